#include "edgetpu_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reef/edgetpu/layer_tensor.h"

namespace reef::runtime {
namespace {

/// The compiler's name for what a program writes back to a state tensor is that tensor's name with
/// this ending.
constexpr std::string_view state_ending = "_variable_output";

/// Where a layer's tensor is among the operator's.
struct Place {
    bool input = false;
    std::size_t index = 0;
};

std::optional<std::size_t> find_tensor(const model::Subgraph& graph,
                                       const std::vector<model::TensorIndex>& tensors,
                                       std::string_view name) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i] >= 0 && graph.tensors[static_cast<std::size_t>(tensors[i])].name == name)
            return i;
    return std::nullopt;
}

Result<Place> place_of_layer(const edgetpu::Layer& layer, bool input, const model::Subgraph& graph,
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
    const std::size_t bytes = REEF_TRY(edgetpu::tensor_bytes(layer));
    const auto declared = tensor.byte_count();
    if (!declared || static_cast<std::size_t>(*declared) != bytes)
        return fail(Cause::bad_input, fmt::format("the tensor has {} bytes, the layer {}",
                                                  declared.value_or(-1), bytes));
    return Place{input, *found};
}

Result<std::vector<Place>> places_of_layers(const std::vector<edgetpu::Layer>& layers, bool input,
                                            const model::Subgraph& graph,
                                            const model::Operator& op) {
    std::vector<Place> places;
    for (const auto& layer : layers)
        places.push_back(REEF_TRY(in_place(place_of_layer(layer, input, graph, op),
                                           fmt::format("layer {}", layer.name))));
    return places;
}

class SimulatedOperator final : public cpu::DeviceOperator {
  public:
    SimulatedOperator(std::shared_ptr<SimulatedOperators::Chip> chip,
                      edgetpu::SimulatedPackage package, std::vector<Place> inputs,
                      std::vector<Place> outputs)
        : chip_(std::move(chip)),
          package_(std::move(package)),
          input_places_(std::move(inputs)),
          output_places_(std::move(outputs)),
          inputs_(input_places_.size()),
          outputs_(output_places_.size()) {}

    [[nodiscard]] std::string kernel() const override { return "compiled program, simulated"; }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        for (std::size_t i = 0; i < inputs_.size(); ++i)
            inputs_[i] = inputs[input_places_[i].index];
        for (std::size_t i = 0; i < outputs_.size(); ++i) {
            const Place& place = output_places_[i];
            outputs_[i] = (place.input ? inputs : outputs)[place.index];
        }
        REEF_CHECK(package_.run(chip_->simulator, inputs_, outputs_));
        const auto found = chip_->simulator.findings();
        chip_->findings.insert(chip_->findings.end(), found.begin(), found.end());
        return {};
    }

  private:
    std::shared_ptr<SimulatedOperators::Chip> chip_;
    edgetpu::SimulatedPackage package_;
    std::vector<Place> input_places_;   ///< by layer
    std::vector<Place> output_places_;  ///< by layer; an input's for state
    std::vector<Bytes> inputs_;
    std::vector<MutableBytes> outputs_;
};

}  // namespace

Result<std::unique_ptr<cpu::DeviceOperator>> SimulatedOperators::prepare(
    const model::Subgraph& graph, const model::Operator& op) {
    if (!edgetpu::is_compiled(op)) return std::unique_ptr<cpu::DeviceOperator>();
    const auto package = REEF_TRY(edgetpu::package_of(op));
    auto simulated = REEF_TRY(edgetpu::SimulatedPackage::prepare(package));
    const auto& executable = simulated.executable();
    auto inputs = REEF_TRY(places_of_layers(executable.inputs, true, graph, op));
    auto outputs = REEF_TRY(places_of_layers(executable.outputs, false, graph, op));
    return std::make_unique<SimulatedOperator>(chip_, std::move(simulated), std::move(inputs),
                                               std::move(outputs));
}

}  // namespace reef::runtime
