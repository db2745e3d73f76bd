#include "debug/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/tensor_input.h"
#include "outputs/array_output.h"
#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/stick_debugger.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::tool::debug {
namespace {

using namespace edgetpu;

/// The one compiled operator of a model.
struct ChipOperator {
    model::Model model;
    CompiledOperator op;
    const Executable* computing = nullptr;

    [[nodiscard]] const model::Subgraph& graph() const { return model.subgraphs[op.subgraph]; }
};

Result<ChipOperator> load_operator(const std::string& path) {
    ChipOperator out{.model = REEF_TRY(model::load_tflite(path)), .op = {}};
    auto packages = REEF_TRY(in_place(packages_of(out.model), path));
    if (packages.empty())
        return fail(Cause::bad_input, "not compiled for the Edge TPU", path,
                    "give it to edgetpu_compiler first");
    if (packages.size() != 1)
        return fail(
            Cause::unsupported,
            fmt::format("not modelled: debugging {} chip operators of one model", packages.size()),
            path);
    out.op = std::move(packages[0]);
    out.computing = REEF_TRY(in_place(edgetpu::computing_executable(out.op.package), path));
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
Result<OperatorTensors> tensors_of(const ChipOperator& chip, const TargetOptions& options) {
    const model::Subgraph& graph = chip.graph();
    const auto inputs = options.inputs.empty() ? REEF_TRY(random_inputs(graph, options.seed))
                                               : REEF_TRY(load_inputs(graph, options.inputs));
    auto tensors =
        REEF_TRY(in_place(tensors_of_operator(chip.model, chip.op, inputs), chip.op.place));
    tensors.bind();
    return tensors;
}

Result<LayerText> text_of(const Layer& layer) {
    const ElementType type = REEF_TRY(element_type_of(layer));
    return LayerText{layer.name, fmt::format("{}x{}x{} {}", layer.y_dim, layer.x_dim, layer.z_dim,
                                             name_of(type))};
}

Status describe(Target& target, const ChipOperator& chip) {
    for (const Layer& layer : chip.computing->inputs)
        target.inputs.push_back(REEF_TRY(text_of(layer)));
    for (const Layer& layer : chip.computing->outputs) {
        target.outputs.push_back(REEF_TRY(text_of(layer)));
        const auto& outputs = chip.graph().operators[chip.op.index].outputs;
        const auto index = tensor_of(chip, layer, outputs);
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        // State tensors that the program writes back are no outputs of the operator.
        if (index) {
            target.output_arrays.push_back(
                array_of(chip.graph().tensors[static_cast<std::size_t>(*index)], {}));
        } else {
            target.output_arrays.push_back(
                {ElementType::uint8, {static_cast<std::int64_t>(bytes)}, {}});
        }
    }
    return {};
}

Result<std::unique_ptr<Debugger>> open_stick(const TargetOptions& options, const Package* package,
                                             std::span<const Bytes> inputs) {
    constexpr std::string_view usb_device = "edgetpu:usb";
    usb::DeviceOptions device;
    device.firmware = options.firmware;
    std::shared_ptr<usb::Bus> bus;
    if (options.device == "edgetpu:null") {
        auto simulated = std::make_shared<usb::SimulatedBus>();
        usb::StickOptions stick;
        stick.has_firmware = true;
        const auto executables =
            package != nullptr ? std::span(package->executables) : std::span<const Executable>();
        simulated->plug(stick, REEF_TRY(usb::NullCore::of(executables)));
        bus = std::move(simulated);
    } else {
        bus = REEF_TRY(usb::libusb_bus());
        if (options.device.size() > usb_device.size())
            device.port = options.device.substr(usb_device.size() + 1);
    }
    return usb::stick_debugger(std::move(bus), device, package, inputs);
}

}  // namespace

Result<Target> open_target(const TargetOptions& options) {
    Target target;
    target.device = options.device;
    target.file = options.file;
    const auto found = runtime::Registry::of_process().find(options.device);
    if (!found || !found->backend->has(runtime::Capability::debug))
        return fail(Cause::bad_argument,
                    fmt::format("'{}' is no device that can be debugged", options.device), {},
                    "edgetpu:sim, edgetpu:sim:NAME, edgetpu:usb, edgetpu:usb:PORT or edgetpu:null");
    target.simulated = found->backend->has(runtime::Capability::simulated);
    const bool stick = !target.simulated;
    if (!stick && !options.firmware.empty())
        return fail(Cause::bad_argument, fmt::format("device {} takes no firmware", options.device),
                    {}, "--firmware is for a stick at edgetpu:usb");
    if (!stick && options.file.empty())
        return fail(Cause::bad_argument, "a simulated chip needs a compiled model", {},
                    "reef debug FILE");
    std::optional<ChipOperator> chip;
    if (!options.file.empty()) {
        chip = REEF_TRY(load_operator(options.file));
        REEF_CHECK(in_place(describe(target, *chip), options.file));
    }
    if (!chip) {
        target.debugger = REEF_TRY(open_stick(options, nullptr, {}));
        return target;
    }
    const OperatorTensors tensors = REEF_TRY(in_place(tensors_of(*chip, options), options.file));
    const std::span<const Bytes> inputs = tensors.binding.inputs();
    if (stick) {
        target.debugger = REEF_TRY(open_stick(options, &chip->op.package, inputs));
        return target;
    }
    target.debugger =
        REEF_TRY(in_place(simulated_debugger(chip->op.package, inputs), options.file));
    return target;
}

}  // namespace reef::tool::debug
