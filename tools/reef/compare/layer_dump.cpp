#include "compare/layer_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "outputs/text_table.h"

namespace reef::tool {

using chip::LayerMatch;

void print_layers_text(Console& console, const LayerDump& dump, const std::string& folder) {
    const auto gathered = static_cast<std::size_t>(std::ranges::count_if(
        dump.layers, [](const DumpedLayer& dumped) { return dumped.layer.problem.empty(); }));
    console.print("\n{} of {} in {}\n", gathered, plural(dump.layers.size(), "layer"),
                  printable(folder));
    TextTable table({{"not gathered"}, {"first instruction"}, {"reason"}});
    for (const DumpedLayer& dumped : dump.layers)
        if (!dumped.layer.problem.empty())
            table.add({dumped.name, dumped.layer.instructions.front(), dumped.layer.problem});
    if (!table.empty()) table.print(console);
    for (const auto& op : dump.without_layer)
        console.print("  no layer is {}\n", printable(op.name));
}

Json layers_json(const LayerDump& dump) {
    Json list = Json::array();
    for (const DumpedLayer& dumped : dump.layers) {
        Json json{{"name", dumped.name},
                  {"layer", dumped.layer.name},
                  {"instructions", dumped.layer.instructions},
                  {"tiles", dumped.layer.tiles},
                  {"sources", dumped.layer.sources}};
        if (dumped.layer.problem.empty()) {
            json["shape"] = dumped.tensor.shape;
            json["type"] = std::string(name_of(dumped.tensor.type));
        } else {
            json["problem"] = dumped.layer.problem;
        }
        if (dumped.match) {
            json["tensor"] = dumped.match->tensor;
            json["tensor_name"] = dumped.plain_name;
            json["operator"] = dumped.match->op;
            json["matched_by"] = std::string(dumped.match->by);
            if (!dumped.match->differences.empty())
                json["different_values"] = differences_json(*dumped.match);
        }
        list.push_back(std::move(json));
    }
    return list;
}

std::string differences_text(const LayerMatch& match) {
    std::string text;
    for (const auto& [field, held, wanted] : match.differences)
        text += fmt::format("{}{} {:.8g}, the plain model's {:.8g}", text.empty() ? "" : "; ",
                            field, held, wanted);
    return text;
}

Json differences_json(const LayerMatch& match) {
    Json list = Json::array();
    for (const auto& [field, held, wanted] : match.differences)
        list.push_back({{"field", std::string(field)}, {"program", held}, {"plain_model", wanted}});
    return list;
}

Json names_json(const std::vector<OperatorWithoutLayer>& operators) {
    Json names = Json::array();
    for (const auto& op : operators) names.push_back(op.name);
    return names;
}

}  // namespace reef::tool
