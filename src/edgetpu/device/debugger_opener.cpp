#include "debugger_opener.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/stick_debugger.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/uri.h"

namespace reef::edgetpu {
namespace {

/// A compiled operator of a model.
struct ChipOperator {
    const model::Model* model = nullptr;
    CompiledOperator op;
    const Executable* computing = nullptr;

    [[nodiscard]] const model::Subgraph& graph() const { return model->subgraphs[op.subgraph]; }
};

std::string numbers_of(const std::vector<CompiledOperator>& packages) {
    std::vector<std::string> numbers;
    for (const auto& each : packages) numbers.push_back(std::to_string(each.index));
    return runtime::in_a_row(numbers);
}

Result<ChipOperator> operator_of(const model::Model& model, std::optional<std::size_t> number,
                                 std::string& program) {
    ChipOperator out{.model = &model, .op = {}};
    auto packages = REEF_TRY(packages_of(model));
    if (packages.empty())
        return fail(Cause::bad_input, "not compiled for the Edge TPU", {},
                    "compile it for the Edge TPU (`target` edgetpu)");
    const auto found = !number ? packages.begin()
                               : std::ranges::find_if(packages, [&](const CompiledOperator& each) {
                                     return each.subgraph == 0 && each.index == *number;
                                 });
    if (found == packages.end())
        return fail(Cause::bad_argument, fmt::format("operator {} holds no program", *number), {},
                    fmt::format("those that do: {}", numbers_of(packages)));
    if (packages.size() > 1)
        program = fmt::format("operator {} (of those with programs: {})", found->index,
                              numbers_of(packages));
    out.op = std::move(*found);
    out.computing = REEF_TRY(computing_executable(out.op.package));
    return out;
}

Result<model::TensorIndex> tensor_of(const ChipOperator& chip, const Layer& layer,
                                     const std::vector<model::TensorIndex>& tensors) {
    for (const model::TensorIndex index : tensors)
        if (index >= 0 && chip.graph().tensors[static_cast<std::size_t>(index)].name == layer.name)
            return index;
    return fail(Cause::bad_input, "none of the operator's tensors has the layer's name",
                fmt::format("layer {}", layer.name),
                "its tensors were renamed after it was compiled");
}

/// In the layers' order.
Result<OperatorTensors> tensors_of(const ChipOperator& chip, const chip::DebugRequest& request) {
    const auto inputs = REEF_TRY(request.inputs(chip.graph()));
    auto tensors =
        REEF_TRY(in_place(tensors_of_operator(*chip.model, chip.op, inputs), chip.op.place));
    tensors.bind();
    return tensors;
}

Result<chip::DebuggedTensor> described(const Layer& layer) {
    const ElementType type = REEF_TRY(element_type_of(layer));
    return chip::DebuggedTensor{layer.name, fmt::format("{}x{}x{} {}", layer.y_dim, layer.x_dim,
                                                        layer.z_dim, name_of(type))};
}

Status describe(chip::DebugTarget& target, const ChipOperator& chip) {
    for (const Layer& layer : chip.computing->inputs)
        target.inputs.push_back(REEF_TRY(described(layer)));
    for (const Layer& layer : chip.computing->outputs) {
        target.outputs.push_back(REEF_TRY(described(layer)));
        const auto& outputs = chip.graph().operators[chip.op.index].outputs;
        const auto index = tensor_of(chip, layer, outputs);
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        // State tensors that the program writes back are no outputs of the operator.
        Array array{ElementType::uint8, {static_cast<std::int64_t>(bytes)}, {}};
        if (index) {
            const auto& tensor = chip.graph().tensors[static_cast<std::size_t>(*index)];
            array.type = tensor.type;
            array.shape.assign(tensor.shape.begin(), tensor.shape.end());
        }
        target.output_arrays.push_back(std::move(array));
    }
    return {};
}

Result<std::unique_ptr<Debugger>> open_stick(const chip::DebugRequest& request,
                                             const runtime::DeviceUri& uri, const Package* package,
                                             std::span<const Bytes> inputs) {
    usb::DeviceOptions device;
    device.firmware = request.firmware;
    std::shared_ptr<usb::Bus> bus;
    if (uri.backend == "null") {
        auto simulated = std::make_shared<usb::SimulatedBus>();
        usb::StickOptions stick;
        stick.has_firmware = true;
        const auto executables =
            package != nullptr ? std::span(package->executables) : std::span<const Executable>();
        simulated->plug(stick, REEF_TRY(usb::NullCore::of(executables)));
        bus = std::move(simulated);
    } else {
        bus = REEF_TRY(usb::libusb_bus());
        device.port = uri.name;
    }
    return usb::stick_debugger(std::move(bus), device, package, inputs);
}

}  // namespace

Result<chip::DebugTarget> DebuggerOpener::open(const chip::DebugRequest& request) const {
    chip::DebugTarget target;
    const auto uri = REEF_TRY(runtime::DeviceUri::parse(request.device));
    if (request.model == nullptr) {
        target.debugger = REEF_TRY(open_stick(request, uri, nullptr, {}));
        return target;
    }
    const ChipOperator chip =
        REEF_TRY(in_place(operator_of(*request.model, request.op, target.program), request.place));
    REEF_CHECK(in_place(describe(target, chip), request.place));
    const OperatorTensors tensors = REEF_TRY(in_place(tensors_of(chip, request), request.place));
    const std::span<const Bytes> inputs = tensors.binding.inputs();
    target.debugger =
        uri.backend == "sim"
            ? REEF_TRY(in_place(simulated_debugger(chip.op.package, inputs), request.place))
            : REEF_TRY(open_stick(request, uri, &chip.op.package, inputs));
    return target;
}

}  // namespace reef::edgetpu
