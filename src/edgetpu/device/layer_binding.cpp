#include "reef/edgetpu/device/layer_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reef/edgetpu/layer_tensor.h"

namespace reef::edgetpu {
namespace {

/// The compiler's name for what a program writes back to a state tensor is that tensor's name with
/// this ending.
constexpr std::string_view state_ending = "_variable_output";

using Place = LayerBinding::Place;

std::optional<std::size_t> find_tensor(const model::Subgraph& graph,
                                       const std::vector<model::TensorIndex>& tensors,
                                       std::string_view name) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i] >= 0 && graph.tensors[static_cast<std::size_t>(tensors[i])].name == name)
            return i;
    return std::nullopt;
}

/// The numbers of the domain of uint8 that a tensor of 8 bits has, where it has one scale.
std::optional<Numerics> numerics_of(const model::Tensor& tensor) {
    const auto& q = tensor.quantization;
    const bool is_signed = tensor.type == ElementType::int8;
    if (!q || q->scale.size() != 1 || (tensor.type != ElementType::uint8 && !is_signed))
        return std::nullopt;
    const std::int64_t zero = q->zero_point.empty() ? 0 : q->zero_point.front();
    return Numerics{static_cast<std::int32_t>(zero + (is_signed ? 128 : 0)), q->scale.front()};
}

/// Values would be read as others: of another type, or with another scale or zero point.
Status check_numbers(const Layer& layer, const model::Tensor& tensor) {
    constexpr const char* hint = "compile the plain model again";
    const ElementType type = REEF_TRY(element_type_of(layer));
    if (type != tensor.type)
        return fail(
            Cause::bad_input,
            fmt::format("the tensor is {}, the layer {}", name_of(tensor.type), name_of(type)), {},
            hint);
    const auto held = numerics_of(tensor);
    if (!held || !layer.numerics || *held == *layer.numerics) return {};
    return fail(Cause::bad_input,
                fmt::format("the tensor has scale {} and zero point {}, the layer {} and {} (of "
                            "uint8)",
                            held->dequantization_factor, held->zero_point,
                            layer.numerics->dequantization_factor, layer.numerics->zero_point),
                {}, hint);
}

Result<Place> place_of_layer(const Layer& layer, bool input, const model::Subgraph& graph,
                             const model::Operator& op) {
    std::string_view name = layer.name;
    auto found = find_tensor(graph, input ? op.inputs : op.outputs, name);
    if (!found && !input && name.ends_with(state_ending)) {
        input = true;
        name.remove_suffix(state_ending.size());
        found = find_tensor(graph, op.inputs, name);
    }
    if (!found)
        return fail(Cause::bad_input, "none of the operator's tensors has the layer's name", {},
                    "its tensors were renamed after it was compiled");
    const auto& tensor =
        graph.tensors[static_cast<std::size_t>((input ? op.inputs : op.outputs)[*found])];
    const std::size_t bytes = REEF_TRY(tensor_bytes(layer));
    const auto declared = tensor.byte_count();
    if (!declared || static_cast<std::size_t>(*declared) != bytes)
        return fail(Cause::bad_input, fmt::format("the tensor has {} bytes, the layer {}",
                                                  declared.value_or(-1), bytes));
    REEF_CHECK(check_numbers(layer, tensor));
    return Place{input, *found};
}

Result<std::vector<Place>> places_of_layers(const std::vector<Layer>& layers, bool input,
                                            const model::Subgraph& graph,
                                            const model::Operator& op) {
    std::vector<Place> places;
    for (const auto& layer : layers)
        places.push_back(REEF_TRY(in_place(place_of_layer(layer, input, graph, op),
                                           fmt::format("layer {}", layer.name))));
    return places;
}

/// Each of the operator's outputs is written by one layer: what none wrote would be what stood in
/// its memory before.
Status check_outputs(const std::vector<Place>& places, const model::Subgraph& graph,
                     const model::Operator& op) {
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        const auto writers = std::ranges::count_if(
            places, [&](const Place& place) { return !place.input && place.index == i; });
        if (writers != 1)
            return fail(Cause::bad_input,
                        fmt::format("{} layers of the program write output '{}'", writers,
                                    graph.tensors[static_cast<std::size_t>(op.outputs[i])].name),
                        {}, "compile the plain model again");
    }
    return {};
}

}  // namespace

Result<LayerBinding> LayerBinding::of(const std::vector<Layer>& inputs,
                                      const std::vector<Layer>& outputs,
                                      const model::Subgraph& graph, const model::Operator& op) {
    LayerBinding binding;
    binding.input_places_ = REEF_TRY(places_of_layers(inputs, true, graph, op));
    binding.output_places_ = REEF_TRY(places_of_layers(outputs, false, graph, op));
    REEF_CHECK(check_outputs(binding.output_places_, graph, op));
    binding.inputs_.resize(inputs.size());
    binding.outputs_.resize(outputs.size());
    return binding;
}

void LayerBinding::bind(std::span<const MutableBytes> inputs,
                        std::span<const MutableBytes> outputs) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = inputs[input_places_[i].index];
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
        const Place& place = output_places_[i];
        outputs_[i] = (place.input ? inputs : outputs)[place.index];
    }
}

}  // namespace reef::edgetpu
