#include "compare/layer_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/chips.h"
#include "outputs/text_table.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

using chip::LayerMatch;

namespace {

using model::TensorIndex;

bool same_sizes(const model::Subgraph& a, const std::vector<TensorIndex>& of_a,
                const model::Subgraph& b, const std::vector<TensorIndex>& of_b) {
    return std::ranges::equal(of_a, of_b, [&](TensorIndex one, TensorIndex other) {
        return a.tensors[static_cast<std::size_t>(one)].byte_count() ==
               b.tensors[static_cast<std::size_t>(other)].byte_count();
    });
}

}  // namespace

Status check_plain_model(const model::Model& compiled, const model::Model& plain) {
    const auto refuse = [](std::string what) {
        return fail(Cause::bad_input, std::move(what), {},
                    "give the plain model that it was compiled from");
    };
    if (plain.subgraphs.empty()) return refuse("it has no subgraph");
    const auto& a = compiled.subgraphs.front();
    const auto& b = plain.subgraphs.front();
    if (is_compiled(plain))
        return refuse(fmt::format("it is compiled for the {} itself", chip_name(family_of(plain))));
    if (!same_sizes(a, a.inputs, b, b.inputs))
        return refuse("its inputs are not those of the compiled model");
    if (!same_sizes(a, a.outputs, b, b.outputs))
        return refuse("its outputs are not those of the compiled model");
    return {};
}

namespace {

Result<std::unique_ptr<chip::LayerSet>> gather(const OpenModel& opened) {
    const runtime::Registry& registry = runtime::Registry::of_process();
    const auto* gatherer = registry.part<chip::LayerGatherer>(family_of(opened.model));
    if (gatherer == nullptr) {
        const std::string chips = chip_names();
        return fail(Cause::unsupported,
                    fmt::format("the model has no operator compiled for the {}", chips), {},
                    fmt::format("give the file that the {} compiler wrote", chips));
    }
    return gatherer->gather(
        {.model = opened.model, .graph = opened.session.graph(), .tensor = [&](TensorIndex index) {
             return opened.session.tensor(index);
         }});
}

/// `match` may be null.
DumpedLayer dumped_layer(const chip::LayerSet& set, std::size_t layer, const LayerMatch* match,
                         const model::Model* plain) {
    DumpedLayer dumped;
    dumped.layer = set.layers()[layer];
    dumped.name = dumped.layer.name;
    if (match == nullptr) {
        dumped.tensor = set.tensor_of(layer);
        return dumped;
    }
    const auto& graph = plain->subgraphs.front();
    const auto& tensor = graph.tensors[static_cast<std::size_t>(match->tensor)];
    dumped.match = *match;
    dumped.plain_name = tensor.name;
    dumped.plain_op = model::place_of(graph, match->op);
    auto as_plain = match->comparable ? set.as_tensor(layer, tensor) : std::nullopt;
    if (as_plain) dumped.name = fmt::format("t{:04}", match->tensor);
    dumped.tensor = as_plain ? std::move(*as_plain) : set.tensor_of(layer);
    return dumped;
}

}  // namespace

Result<LayerDump> dump_layers(const OpenModel& opened, const model::Model* plain) {
    LayerDump dump;
    dump.set = REEF_TRY(gather(opened));
    chip::LayerSet::Matches matches;
    if (plain != nullptr) {
        matches = REEF_TRY(dump.set->match(*plain));
        for (const std::size_t op : matches.operators_without_layer)
            dump.without_layer.push_back({op, model::place_of(plain->subgraphs.front(), op)});
    }
    for (std::size_t i = 0; i < dump.set->layers().size(); ++i) {
        const auto match = std::ranges::find(matches.layers, i, &LayerMatch::layer);
        dump.layers.push_back(
            dumped_layer(*dump.set, i, match == matches.layers.end() ? nullptr : &*match, plain));
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
