#include "traffic_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::edgetpu {
namespace {

/// A compiled model, ready to run its one chip operator.
struct ChipModel {
    std::vector<Executable> executables;
    std::shared_ptr<const usb::Program> program;
    OperatorTensors tensors;
};

/// What the CPU computes before the operator is computed.
Result<ChipModel> chip_model(const chip::TrafficRuns& runs) {
    const auto packages = REEF_TRY(in_place(packages_of(runs.model), runs.place));
    if (packages.empty()) {
        return fail(Cause::bad_input, "not compiled for the Edge TPU", runs.place,
                    "give it to edgetpu_compiler first");
    }
    if (packages.size() != 1) {
        return fail(
            Cause::unsupported,
            fmt::format("not modelled: recording {} chip operators of one model", packages.size()),
            runs.place);
    }
    const CompiledOperator& op = packages[0];
    const auto tensors = REEF_TRY(runs.inputs(runs.model.subgraphs[op.subgraph]));
    ChipModel out;
    out.tensors = REEF_TRY(in_place(tensors_of_operator(runs.model, op, tensors),
                                    fmt::format("{}: {}", runs.place, op.place)));
    out.program = REEF_TRY(in_place(usb::Program::prepare(op.package), runs.place));
    out.executables = op.package.executables;
    return out;
}

struct NamedBus {
    std::shared_ptr<usb::Bus> bus;
    std::string port{};  ///< empty: the first
};

std::shared_ptr<usb::Bus> simulated_bus(std::unique_ptr<usb::ChipCore> core) {
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.has_firmware = true, .faults = {}}, std::move(core));
    return bus;
}

Result<NamedBus> bus_named(const std::string& device, const ChipModel& model) {
    constexpr std::string_view on_port = "edgetpu:usb:";
    if (device == "edgetpu:null")
        return NamedBus{simulated_bus(REEF_TRY(usb::NullCore::of(model.executables)))};
    if (device == "edgetpu:sim")
        return NamedBus{simulated_bus(std::make_unique<usb::SimulatorCore>())};
    if (device == "edgetpu:usb") return NamedBus{REEF_TRY(usb::libusb_bus())};
    if (device.starts_with(on_port))
        return NamedBus{REEF_TRY(usb::libusb_bus()), device.substr(on_port.size())};
    return fail(Cause::bad_argument, fmt::format("'{}' is no device with USB traffic", device), {},
                "edgetpu:usb, edgetpu:usb:PORT, edgetpu:sim or edgetpu:null");
}

usb::DeviceOptions options_of(const std::string& port, const chip::DriverSettings& driver) {
    usb::DeviceOptions out;
    out.port = port;
    if (driver.standard_clock) out.performance = usb::Performance::high;
    if (driver.multiple_endpoints) out.endpoints = usb::Endpoints::multiple;
    out.firmware = driver.firmware;
    return out;
}

/// Opens the device, runs and closes.
Status run_on(const NamedBus& at, ChipModel& model, const chip::TrafficRuns& runs) {
    const auto device = REEF_TRY(usb::Device::open(at.bus, options_of(at.port, runs.driver)));
    model.tensors.bind();
    const LayerBinding& binding = model.tensors.binding;
    for (unsigned run = 0; run < runs.runs; ++run) {
        REEF_CHECK(in_place(device->run(model.program, binding.inputs(), binding.outputs()),
                            fmt::format("run {}", run)));
    }
    return {};
}

class UsbTraffic final : public chip::Traffic {
  public:
    explicit UsbTraffic(usb::Recording recording) : recording_(std::move(recording)) {}

    [[nodiscard]] std::size_t items() const override {
        return static_cast<std::size_t>(std::ranges::count(recording_.text, '\n'));
    }
    [[nodiscard]] std::size_t payload_bytes() const override { return recording_.data.size(); }
    [[nodiscard]] Result<bool> holds_transfers() const override {
        return usb::holds_transfers(recording_);
    }
    [[nodiscard]] Status write(const std::string& path) const override {
        return usb::write_recording(path, recording_);
    }
    [[nodiscard]] Result<std::vector<std::string>> view() const override {
        return usb::wire_view(recording_);
    }
    [[nodiscard]] Result<chip::Replayed> replay(const chip::TrafficRuns& runs) const override {
        const auto bus = REEF_TRY(usb::replay_bus(recording_));
        ChipModel model = REEF_TRY(chip_model(runs));
        return chip::Replayed{run_on({bus}, model, runs)};
    }
    [[nodiscard]] Result<chip::StartAgreement> start(
        const chip::DriverSettings& driver) const override;

  private:
    usb::Recording recording_;
};

Result<chip::StartAgreement> UsbTraffic::start(const chip::DriverSettings& driver) const {
    const usb::Recording start = usb::without_data_transfers(recording_);
    const auto recorded = REEF_TRY(usb::register_transfers(start));
    const auto recorder = std::make_shared<usb::RecordingBus>(REEF_TRY(usb::replay_bus(start)));
    chip::StartAgreement out;
    // Closing the device stops it.
    if (auto opened = usb::Device::open(recorder, options_of({}, driver)); !opened)
        out.done = std::unexpected(std::move(opened.error()));
    const auto driven = REEF_TRY(usb::register_transfers(recorder->recording()));
    out.recorded = recorded.size();
    out.driven = driven.size();
    for (std::size_t i = 0; i < std::min(recorded.size(), driven.size()); ++i) {
        const auto &a = recorded[i], &b = driven[i];
        const bool same = a.to_host == b.to_host && a.offset == b.offset && a.bits == b.bits;
        out.same += same;
        out.same_values += same && a.value == b.value;
    }
    return out;
}

}  // namespace

Result<chip::RecordedRuns> TrafficRecorder::record(const std::string& device,
                                                   const chip::TrafficRuns& runs) const {
    ChipModel model = REEF_TRY(chip_model(runs));
    NamedBus at = REEF_TRY(bus_named(device, model));
    const auto recorder = std::make_shared<usb::RecordingBus>(std::move(at.bus));
    at.bus = recorder;
    auto done = run_on(at, model, runs);
    return chip::RecordedRuns{std::make_unique<UsbTraffic>(recorder->recording()), std::move(done)};
}

Result<std::unique_ptr<chip::Traffic>> TrafficRecorder::read(const std::string& path) const {
    return std::make_unique<UsbTraffic>(REEF_TRY(usb::read_recording(path)));
}

}  // namespace reef::edgetpu
