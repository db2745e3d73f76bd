#include "layer_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/runtime/program_layers.h"
#include "text_table.h"

namespace reef::tool {

using edgetpu::LayerMatch;

Result<LayerDump> dump_layers(const OpenModel& opened, const model::Model* plain) {
    auto layers = REEF_TRY(runtime::program_layers(opened.session));
    std::vector<LayerMatch> matches;
    LayerDump dump;
    if (plain != nullptr) {
        matches = REEF_TRY(edgetpu::match_layers(layers, opened.model, *plain));
        const auto& graph = plain->subgraphs.front();
        for (const std::size_t op :
             REEF_TRY(edgetpu::operators_without_layer(matches, opened.model, *plain)))
            dump.without_layer.push_back(model::place_of(graph, op));
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
        DumpedLayer& dumped = dump.layers.emplace_back();
        dumped.layer = std::move(layers[i]);
        dumped.name = dumped.layer.name;
        const auto match = std::ranges::find(matches, i, &LayerMatch::layer);
        if (match == matches.end()) {
            dumped.tensor = dumped.layer.tensor;
            continue;
        }
        const auto& tensor =
            plain->subgraphs.front().tensors[static_cast<std::size_t>(match->tensor)];
        dumped.match = *match;
        dumped.name = fmt::format("t{:04}", match->tensor);
        dumped.plain_name = tensor.name;
        dumped.tensor = edgetpu::tensor_like(dumped.layer, tensor);
    }
    return dump;
}

NamedArrays arrays_of(const LayerDump& dump) {
    NamedArrays arrays;
    for (const DumpedLayer& dumped : dump.layers)
        if (dumped.layer.problem.empty()) arrays.emplace_back(dumped.name, dumped.tensor);
    return arrays;
}

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
    for (const std::string& op : dump.without_layer)
        console.print("  no layer is {}\n", printable(op));
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
            json["matched_by"] = std::string(to_string(dumped.match->by));
        }
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace reef::tool
