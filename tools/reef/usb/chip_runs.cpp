#include "usb/chip_runs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "inputs/tensor_input.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/tflite.h"

namespace reef::tool {

using namespace edgetpu;

void add_chip_run_options(CLI::App& app, ChipRunOptions& options) {
    app.add_option("--input", options.inputs, "Input: .npy, .npz, picture, raw bytes")
        ->type_name("[NAME=]FILE");
    app.add_option("--seed", options.seed, "Seed of random inputs, without --input")
        ->capture_default_str();
    app.add_option("--runs", options.runs, "Inferences; the first also loads parameters")
        ->capture_default_str()
        ->check(CLI::Range(1U, 1000000U));
    app.add_flag("--standard-clock", options.standard_clock, "Throttle the chip's clock");
    app.add_option("--firmware", options.firmware, "Firmware for a stick that has none")
        ->type_name("FILE");
}

CLI::Validator recording_name() {
    return CLI::Validator(
        [](const std::string& name) {
            return name == "-" ? std::string(
                                     "'-' is no recording: one is two files, FILE and "
                                     "FILE.bin; name the file")
                               : std::string();
        },
        "");
}

Result<ChipModel> load_chip_model(const std::string& path, const ChipRunOptions& options) {
    const auto model = REEF_TRY(model::load_tflite(path));
    const auto packages = REEF_TRY(in_place(packages_of(model), path));
    if (packages.empty()) {
        return fail(Cause::bad_input, "not compiled for the Edge TPU", path,
                    "give it to edgetpu_compiler first");
    }
    if (packages.size() != 1) {
        return fail(
            Cause::unsupported,
            fmt::format("not modelled: recording {} chip operators of one model", packages.size()),
            path);
    }
    const CompiledOperator& op = packages[0];
    const model::Subgraph& graph = model.subgraphs[op.subgraph];
    const auto tensors = options.inputs.empty() ? REEF_TRY(random_inputs(graph, options.seed))
                                                : REEF_TRY(load_inputs(graph, options.inputs));
    ChipModel out;
    out.tensors = REEF_TRY(
        in_place(tensors_of_operator(model, op, tensors), fmt::format("{}: {}", path, op.place)));
    out.program = REEF_TRY(in_place(usb::Program::prepare(op.package), path));
    out.executables = op.package.executables;
    return out;
}

Result<std::shared_ptr<usb::Bus>> bus_named(const std::string& device, const ChipModel& model,
                                            std::string& port) {
    constexpr std::string_view usb_device = "edgetpu:usb";
    if (device == "edgetpu:null") {
        auto bus = std::make_shared<usb::SimulatedBus>();
        usb::StickOptions stick;
        stick.has_firmware = true;
        bus->plug(stick, REEF_TRY(usb::NullCore::of(model.executables)));
        return bus;
    }
    if (device == "edgetpu:sim") {
        auto bus = std::make_shared<usb::SimulatedBus>();
        bus->plug({.has_firmware = true, .faults = {}}, std::make_unique<usb::SimulatorCore>());
        return bus;
    }
    if (device == usb_device) return usb::libusb_bus();
    if (device.starts_with(std::string(usb_device) + ":")) {
        port = device.substr(usb_device.size() + 1);
        return usb::libusb_bus();
    }
    return fail(Cause::bad_argument, fmt::format("'{}' is no device with USB traffic", device), {},
                "edgetpu:usb, edgetpu:usb:PORT, edgetpu:sim or edgetpu:null");
}

namespace {

usb::DeviceOptions options_of(const std::string& port, const ChipRunOptions& options) {
    usb::DeviceOptions out;
    out.port = port;
    if (options.standard_clock) out.performance = usb::Performance::high;
    out.firmware = options.firmware;
    return out;
}

}  // namespace

Status start_and_stop(const std::shared_ptr<usb::Bus>& bus, const ChipRunOptions& options) {
    // The destructor stops it.
    REEF_TRY(usb::Device::open(bus, options_of({}, options))).reset();
    return {};
}

Status run_on_chip(const std::shared_ptr<usb::Bus>& bus, const std::string& port, ChipModel& model,
                   const ChipRunOptions& options) {
    const auto device = REEF_TRY(usb::Device::open(bus, options_of(port, options)));
    model.tensors.bind();
    const LayerBinding& binding = model.tensors.binding;
    for (unsigned run = 0; run < options.runs; ++run) {
        REEF_CHECK(in_place(device->run(model.program, binding.inputs(), binding.outputs()),
                            fmt::format("run {}", run)));
    }
    return {};
}

}  // namespace reef::tool
