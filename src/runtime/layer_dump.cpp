#include "reef/runtime/layer_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/model/part.h"
#include "reef/runtime/chips.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {

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

Result<model::Model> plain_model_of(const model::Model& compiled, model::Model plain) {
    const auto refuse = [](std::string what) {
        return fail(Cause::bad_input, std::move(what), {},
                    "give the plain model that it was compiled from; of a segment, one whose "
                    "tensors have the names of its inputs and outputs");
    };
    if (plain.subgraphs.empty()) return refuse("it has no subgraph");
    if (is_compiled(plain))
        return refuse(fmt::format("it is compiled for the {} itself", chip_name(family_of(plain))));
    if (const auto ends = model::ends_in(plain, compiled))
        plain = REEF_TRY(model::part_between(plain, *ends));
    const auto& a = compiled.subgraphs.front();
    const auto& b = plain.subgraphs.front();
    if (!same_sizes(a, a.inputs, b, b.inputs))
        return refuse("its inputs are not those of the compiled model");
    if (!same_sizes(a, a.outputs, b, b.outputs))
        return refuse("its outputs are not those of the compiled model");
    return plain;
}

namespace {

Result<std::unique_ptr<chip::LayerSet>> gather(const model::Model& compiled, const Session& ran) {
    const Registry& registry = Registry::of_process();
    const auto* gatherer = registry.part<chip::LayerGatherer>(family_of(compiled));
    if (gatherer == nullptr) {
        const std::string chips = chip_names();
        return fail(Cause::unsupported,
                    fmt::format("the model has no operator compiled for the {}", chips), {},
                    fmt::format("give the file that the {} compiler wrote", chips));
    }
    return gatherer->gather({.model = compiled,
                             .graph = ran.graph(),
                             .tensor = [&](TensorIndex index) { return ran.tensor(index); }});
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

Result<LayerDump> dump_layers(const model::Model& compiled, const Session& ran,
                              const model::Model* plain) {
    LayerDump dump;
    dump.set = REEF_TRY(gather(compiled, ran));
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

}  // namespace reef::runtime
