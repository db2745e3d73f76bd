#include "compare/layer_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compare/fed_operators.h"
#include "inputs/chips.h"
#include "inputs/model_session.h"
#include "inputs/tensor_set.h"
#include "outputs/array_output.h"
#include "outputs/stages.h"
#include "reef/model/part.h"
#include "reef/runtime/registry.h"

namespace reef::tool {
namespace {

constexpr std::string_view by_equal_values = "equal values";
constexpr std::string_view by_output = "output";

Result<OpenModel> open_for_tensors(const NamedModel& of, DeviceOptions device,
                                   std::vector<bool> in_arithmetic = {}) {
    runtime::SessionOptions settings = session_options(device);
    settings.in_arithmetic = std::move(in_arithmetic);
    settings.keep_all_tensors = true;
    return open_model(of.model, of.name, settings);
}

struct Files {
    const chip::LayerGatherer* gatherer = nullptr;
    std::vector<bool> on_chip;  ///< by operator of the plain model
    chip::LayerReference reference;
    std::string plain_name;  ///< of what the compiled model computes
};

/// What the CPU computed of the plain model.
struct PlainTensors {
    const model::Subgraph& graph;
    std::function<Bytes(model::TensorIndex)> tensor;
};

/// Whether there is anything to compare, before anything runs, and who gathers the layers. Of the
/// plain model, leaves what a segment computes.
Result<Files> check_files(LayersToCompare& what) {
    const model::Model& compiled = what.compiled.model;
    model::Model& plain = what.plain.model;
    const auto* gatherer =
        runtime::Registry::of_process().part<chip::LayerGatherer>(family_of(compiled));
    if (gatherer == nullptr) {
        const std::string chips = chip_names();
        return fail(
            Cause::bad_input,
            fmt::format("the first file must be the compiled one, and this has no operator "
                        "compiled for the {}",
                        chips),
            what.compiled.name,
            is_compiled(plain)
                ? "the second file is compiled: swap them"
                : fmt::format("give the file that the {} compiler wrote, then its plain one",
                              chips));
    }
    const std::string name =
        REEF_TRY(in_place(name_of_part(what.plain, compiled), what.plain.name));
    plain =
        REEF_TRY(in_place(runtime::plain_model_of(compiled, std::move(plain)), what.plain.name));
    return Files{gatherer, REEF_TRY(gatherer->on_chip(compiled, plain)),
                 REEF_TRY(gatherer->reference(compiled)), name};
}

/// A computed tensor of the plain model that nothing else was compared with and whose bytes, in its
/// type, are the layer's: nothing when there are several.
std::optional<model::TensorIndex> find_by_values(std::size_t layer, const PlainTensors& plain,
                                                 const LayerComparison& result) {
    const auto& graph = plain.graph;
    std::optional<model::TensorIndex> found;
    for (const model::Operator& op : graph.operators)
        for (const model::TensorIndex index : op.outputs) {
            if (index == model::absent_tensor) continue;
            const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
            const std::string name = fmt::format("t{:04}", index);
            const bool taken =
                std::ranges::any_of(result.dump.layers, [&](const DumpedLayer& other) {
                    return other.match && other.match->comparable && other.match->tensor == index;
                });
            if (taken) continue;
            const auto mine = result.dump.set->as_tensor(layer, tensor);
            if (!mine || *mine != array_of(tensor, plain.tensor(index))) continue;
            if (found && *found != index) return std::nullopt;
            found = index;
        }
    return found;
}

void compare_layer(LayerComparison& result, std::size_t i, const PlainTensors& plain) {
    const DumpedLayer& dumped = result.dump.layers[i];
    if (!dumped.layer.problem.empty() || (dumped.match && !dumped.match->comparable)) return;
    std::string how;
    std::optional<model::TensorIndex> index;
    if (dumped.match) {
        how = dumped.match->by;
        index = dumped.match->tensor;
    } else {
        how = by_equal_values;
        index = find_by_values(i, plain, result);
    }
    if (!index) return;
    const auto& tensor = plain.graph.tensors[static_cast<std::size_t>(*index)];
    const auto mine = result.dump.set->as_tensor(i, tensor);
    if (!mine) return;
    result.sets.tensors.push_back(compare_pair(fmt::format("t{:04}", *index), *mine,
                                               array_of(tensor, plain.tensor(*index)),
                                               result.sets.rules));
    result.origins.push_back({.layer = i, .matched_by = std::move(how)});
    std::erase_if(result.dump.without_layer, [&](const auto& without) {
        const auto& outputs = plain.graph.operators[without.op].outputs;
        return std::ranges::find(outputs, *index) != outputs.end();
    });
}

std::optional<model::TensorIndex> find_by_name(const model::Subgraph& graph,
                                               const std::string& name) {
    const auto found = std::ranges::find(graph.tensors, name, &model::Tensor::name);
    if (found == graph.tensors.end()) return std::nullopt;
    return static_cast<model::TensorIndex>(found - graph.tensors.begin());
}

void compare_output(LayerComparison& result, const std::string& name, const Array& chip,
                    const Array& plain, bool from_cpu) {
    result.sets.tensors.push_back(compare_pair(name, chip, plain, result.sets.rules));
    result.origins.push_back(
        {.layer = std::nullopt, .matched_by = std::string(by_output), .from_cpu = from_cpu});
}

/// What the compiled operators leave for the next run.
void compare_states(LayerComparison& result, const runtime::Session& chip,
                    const PlainTensors& plain) {
    const auto& graph = chip.graph();
    const runtime::Registry& registry = runtime::Registry::of_process();
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
        if (registry.compiled_for(graph.operators[op]) == nullptr) continue;
        std::size_t state = 0;
        for (const model::TensorIndex index : graph.operators[op].inputs) {
            if (index == model::absent_tensor) continue;
            const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
            if (!tensor.is_variable) continue;
            const std::string name = fmt::format("op{}_state{}", op, state++);
            const auto same = [&](const model::Tensor& other) {
                return other.is_variable && other.name == tensor.name;
            };
            const auto found = std::ranges::find_if(plain.graph.tensors, same);
            if (found == plain.graph.tensors.end()) continue;
            const Bytes bytes =
                plain.tensor(static_cast<model::TensorIndex>(found - plain.graph.tensors.begin()));
            // Operators that ran one by one have kept none.
            if (bytes.size() == chip.tensor(index).size())
                compare_output(result, name, array_of(tensor, chip.tensor(index)),
                               array_of(*found, bytes), false);
        }
    }
}

/// What the compiled operators hand to those on the CPU, then what the model gives.
void compare_outputs(LayerComparison& result, const runtime::Session& chip,
                     const PlainTensors& plain) {
    const auto& graph = chip.graph();
    const auto of_chip = [&](model::TensorIndex index) {
        return array_of(graph.tensors[static_cast<std::size_t>(index)], chip.tensor(index));
    };
    // A session knows shapes that a file leaves open; computed one by one, operators have the
    // file's.
    const auto of_plain = [&](model::TensorIndex index, model::TensorIndex same_on_chip) {
        const auto& tensor = plain.graph.tensors[static_cast<std::size_t>(index)];
        const auto& known = graph.tensors[static_cast<std::size_t>(same_on_chip)];
        const Bytes bytes = plain.tensor(index);
        const bool open = tensor.shape.empty() && tensor.type == known.type &&
                          bytes.size() == chip.tensor(same_on_chip).size();
        return array_of(open ? known : tensor, bytes);
    };
    const runtime::Registry& registry = runtime::Registry::of_process();
    std::vector<model::TensorIndex> from_chip;
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
        if (registry.compiled_for(graph.operators[op]) == nullptr) continue;
        const auto& outputs = graph.operators[op].outputs;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            from_chip.push_back(outputs[i]);
            if (std::ranges::find(graph.outputs, outputs[i]) != graph.outputs.end()) continue;
            const auto& name = graph.tensors[static_cast<std::size_t>(outputs[i])].name;
            if (const auto other = find_by_name(plain.graph, name))
                compare_output(result, fmt::format("op{}_out{}", op, i), of_chip(outputs[i]),
                               of_plain(*other, outputs[i]), false);
        }
    }
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        const bool from_cpu = std::ranges::find(from_chip, graph.outputs[i]) == from_chip.end();
        compare_output(result, fmt::format("out{}", i), of_chip(graph.outputs[i]),
                       of_plain(plain.graph.outputs[i], graph.outputs[i]), from_cpu);
    }
}

void compare_with(LayerComparison& result, const runtime::Session& chip,
                  const PlainTensors& plain) {
    for (std::size_t i = 0; i < result.dump.layers.size(); ++i) compare_layer(result, i, plain);
    compare_states(result, chip, plain);
    compare_outputs(result, chip, plain);
    const auto different = std::ranges::find_if_not(result.sets.tensors, &ComparedTensor::same);
    if (different != result.sets.tensors.end())
        result.first_different = static_cast<std::size_t>(different - result.sets.tensors.begin());
}

/// The plain model runs as a whole, what is on the chip in the chip's arithmetic.
Status compare_in_its_arithmetic(const LayersToCompare& what, const Files& files,
                                 const OpenModel& compiled, Stages& stages,
                                 LayerComparison& result) {
    const std::string arithmetic(files.gatherer->family());
    OpenModel plain =
        REEF_TRY(open_for_tensors(what.plain, {.arithmetic = arithmetic}, files.on_chip));
    set_inputs(plain.session, what.inputs);
    stages.begin("running the plain model");
    REEF_TRY(in_place(timed_run(plain.session), what.plain.name));
    stages.begin("gathering the layers' tensors");
    result.dump = REEF_TRY(in_place(
        runtime::dump_layers(compiled.model, compiled.session, &plain.model), what.compiled.name));
    result.sets.b = fmt::format("{} on cpu,arithmetic={}", files.plain_name, arithmetic);
    stages.begin("comparing");
    compare_with(result, compiled.session,
                 {plain.session.graph(), [&](auto index) { return plain.session.tensor(index); }});
    return {};
}

/// The plain model's operators run one by one on what the chip gave.
Status compare_one_by_one(const LayersToCompare& what, const Files& files,
                          const OpenModel& compiled, Stages& stages, LayerComparison& result) {
    const model::Model& plain = what.plain.model;
    stages.begin("gathering the layers' tensors");
    result.dump = REEF_TRY(in_place(runtime::dump_layers(compiled.model, compiled.session, &plain),
                                    what.compiled.name));
    stages.begin("running the plain model");
    const ComputedTensors computed =
        REEF_TRY(in_place(run_fed_operators(plain, what.inputs, result.dump), what.plain.name));
    result.sets.b = fmt::format("{} on cpu, operator by operator", files.plain_name);
    result.rounding = files.reference.rounding;
    if (!what.rules_given) result.sets.rules.tolerance.absolute = files.reference.tolerance;
    stages.begin("comparing");
    compare_with(result, compiled.session,
                 {plain.subgraphs.front(),
                  [&](auto index) { return Bytes(computed[static_cast<std::size_t>(index)]); }});
    return {};
}

}  // namespace

Result<std::string> name_of_part(const NamedModel& whole, const model::Model& compiled) {
    const auto ends = model::ends_in(whole.model, compiled);
    if (!ends) return whole.name;
    const auto operators = REEF_TRY(model::operators_between(whole.model, *ends));
    return fmt::format("operators {} to {} of {}", operators.front(), operators.back(), whole.name);
}

Result<LayerComparison> compare_layers(LayersToCompare what) {
    const Files files = REEF_TRY(check_files(what));
    const std::string device(files.gatherer->device());
    OpenModel compiled = REEF_TRY(open_for_tensors(what.compiled, {.device = device}));
    set_inputs(compiled.session, what.inputs);
    Stages stages(4);
    stages.begin("running the compiled model");
    REEF_TRY(in_place(timed_run(compiled.session), what.compiled.name));
    LayerComparison result;
    result.sets.a = fmt::format("{} on {}", what.compiled.name, device);
    result.sets.rules = what.rules;
    const auto compare =
        files.reference.own_arithmetic ? compare_in_its_arithmetic : compare_one_by_one;
    REEF_CHECK(compare(what, files, compiled, stages, result));
    return result;
}

}  // namespace reef::tool
