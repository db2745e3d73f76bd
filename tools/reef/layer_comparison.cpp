#include "layer_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "array_output.h"
#include "tensor_set.h"
#include "text_table.h"

namespace reef::tool {
namespace {

constexpr std::string_view by_equal_values = "equal values";

Result<OpenModel> open_for_tensors(const std::string& path, DeviceOptions device) {
    runtime::SessionOptions settings = session_options(device);
    settings.keep_all_tensors = true;
    return open_model(path, settings);
}

Status set_same_inputs(OpenModel& compiled, OpenModel& plain, const LayersToCompare& what) {
    const InputBytes inputs =
        REEF_TRY(inputs_or_random(compiled.session.graph(), what.inputs, what.seed));
    bool same = plain.session.input_count() == inputs.size();
    for (std::size_t i = 0; same && i < inputs.size(); ++i)
        same = compiled.session.input(i).size() == plain.session.input(i).size();
    if (!same)
        return fail(Cause::bad_input, "its inputs are not those of the compiled model", what.plain,
                    "give the plain model that it was compiled from");
    set_inputs(compiled.session, inputs);
    set_inputs(plain.session, inputs);
    return {};
}

/// A computed tensor of the plain model that nothing else was compared with and whose bytes, in its
/// type, are the layer's: nothing when there are several.
std::optional<model::TensorIndex> find_by_values(const DumpedLayer& dumped,
                                                 const runtime::Session& plain,
                                                 const LayerComparison& result) {
    const auto& graph = plain.graph();
    std::optional<model::TensorIndex> found;
    for (const model::Operator& op : graph.operators)
        for (const model::TensorIndex index : op.outputs) {
            if (index == model::absent_tensor) continue;
            const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
            const std::string name = fmt::format("t{:04}", index);
            const bool taken =
                std::ranges::any_of(result.dump.layers, [&](const DumpedLayer& other) {
                    return other.match && other.match->tensor == index;
                });
            if (taken || !edgetpu::is_alike(dumped.layer, tensor)) continue;
            const Array mine = edgetpu::tensor_like(dumped.layer, tensor);
            if (mine != array_of(tensor, plain.tensor(index))) continue;
            if (found && *found != index) return std::nullopt;
            found = index;
        }
    return found;
}

void compare_layer(LayerComparison& result, std::size_t i, const runtime::Session& plain,
                   double tolerance) {
    DumpedLayer& dumped = result.dump.layers[i];
    if (!dumped.layer.problem.empty()) return;
    std::string how;
    std::optional<model::TensorIndex> index;
    if (dumped.match) {
        how = to_string(dumped.match->by);
        index = dumped.match->tensor;
    } else {
        how = by_equal_values;
        index = find_by_values(dumped, plain, result);
    }
    if (!index) return;
    const auto& tensor = plain.graph().tensors[static_cast<std::size_t>(*index)];
    const Array mine = edgetpu::tensor_like(dumped.layer, tensor);
    result.sets.tensors.push_back(compare_pair(fmt::format("t{:04}", *index), mine,
                                               array_of(tensor, plain.tensor(*index)), tolerance));
    result.layer_of.push_back(i);
    result.matched_by.push_back(std::move(how));
    if (!result.first_different && !result.sets.tensors.back().same())
        result.first_different = result.sets.tensors.size() - 1;
}

/// Layers that were not compared, with the reason.
std::vector<std::pair<const DumpedLayer*, std::string>> left_out(const LayerComparison& result) {
    std::vector<std::pair<const DumpedLayer*, std::string>> list;
    for (std::size_t i = 0; i < result.dump.layers.size(); ++i) {
        if (std::ranges::find(result.layer_of, i) != result.layer_of.end()) continue;
        const DumpedLayer& dumped = result.dump.layers[i];
        list.emplace_back(&dumped, dumped.layer.problem.empty()
                                       ? "no tensor of the plain model is known to be it"
                                       : dumped.layer.problem);
    }
    return list;
}

}  // namespace

Result<LayerComparison> compare_layers(const LayersToCompare& what) {
    OpenModel compiled = REEF_TRY(
        open_for_tensors(what.compiled, {.device = "edgetpu:sim", .arithmetic = "tflite"}));
    OpenModel plain =
        REEF_TRY(open_for_tensors(what.plain, {.device = "cpu", .arithmetic = "edgetpu"}));
    REEF_CHECK(set_same_inputs(compiled, plain, what));
    REEF_TRY(in_place(timed_run(compiled.session), what.compiled));
    REEF_TRY(in_place(timed_run(plain.session), what.plain));
    LayerComparison result;
    result.dump = REEF_TRY(in_place(dump_layers(compiled, &plain.model), what.compiled));
    result.sets.a = what.compiled + " on edgetpu:sim";
    result.sets.b = what.plain + " on cpu,arithmetic=edgetpu";
    result.sets.tolerance = what.tolerance;
    for (std::size_t i = 0; i < result.dump.layers.size(); ++i)
        compare_layer(result, i, plain.session, what.tolerance);
    if (result.sets.tensors.empty())
        return fail(Cause::bad_input, "none of its layers is a tensor of the plain model",
                    what.compiled, "give the plain model that it was compiled from");
    return result;
}

void print_layer_comparison_text(Console& console, const LayerComparison& result, bool all) {
    print_comparison_text(console, result.sets, all);
    if (result.first_different) {
        const std::size_t at = *result.first_different;
        const DumpedLayer& dumped = result.dump.layers[result.layer_of[at]];
        console.print("\nfirst layer that differs: {} {}\n  {}, {}, matched by {}\n",
                      result.sets.tensors[at].name, printable(dumped.plain_name), dumped.layer.name,
                      dumped.layer.instructions.front(), result.matched_by[at]);
    }
    TextTable table({{"not compared"}, {"first instruction"}, {"reason"}});
    for (const auto& [dumped, reason] : left_out(result))
        table.add({dumped->layer.name, dumped->layer.instructions.front(), reason});
    if (!table.empty()) {
        console.print("\n");
        table.print(console);
    }
    for (const std::string& op : result.dump.without_layer)
        console.print("  no layer is {}\n", printable(op));
}

Json layer_comparison_json(const LayerComparison& result) {
    Json document = comparison_json(result.sets);
    for (std::size_t i = 0; i < result.sets.tensors.size(); ++i) {
        const DumpedLayer& dumped = result.dump.layers[result.layer_of[i]];
        Json& tensor = document["tensors"][i];
        tensor["layer"] = dumped.layer.name;
        tensor["instructions"] = dumped.layer.instructions;
        tensor["matched_by"] = result.matched_by[i];
    }
    document["first_different_tensor"] = nullptr;
    if (result.first_different)
        document["first_different_tensor"] = result.sets.tensors[*result.first_different].name;
    document["not_compared"] = Json::array();
    for (const auto& [dumped, reason] : left_out(result))
        document["not_compared"].push_back({{"layer", dumped->layer.name},
                                            {"instructions", dumped->layer.instructions},
                                            {"reason", reason}});
    document["operators_without_layer"] = result.dump.without_layer;
    return document;
}

}  // namespace reef::tool
