#include "traffic_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "driven_chip.h"
#include "reef/edgetpu/device/driver.h"
#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/runtime/session.h"

namespace reef::edgetpu {
namespace {

/// The family's driver, but what it opens is behind a bus that the recorder knows.
class RecordedDriver final : public runtime::Driver {
  public:
    using Open = std::function<Result<DrivenChip>(const runtime::DeviceUri&,
                                                  const runtime::OptionValues&, int threads)>;
    explicit RecordedDriver(Open open) : driver_(driver()), open_(std::move(open)) {}

    [[nodiscard]] std::string_view family() const override { return driver_->family(); }
    [[nodiscard]] std::string_view sentence() const override { return driver_->sentence(); }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return driver_->backends();
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override {
        return driver_->options();
    }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return driver_->words(); }
    [[nodiscard]] runtime::Enumeration enumerate() const override { return driver_->enumerate(); }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return driver_->is_compiled(op);
    }
    [[nodiscard]] Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        const model::Subgraph& graph, const model::Operator& op) const override {
        return driver_->prepare(device, options, graph, op);
    }
    [[nodiscard]] Result<std::shared_ptr<runtime::Device>> open(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        int threads) const override {
        return open_driven(REEF_TRY(open_(device, options, threads)));
    }
    [[nodiscard]] bool shares(const runtime::DeviceUri&,
                              const runtime::OptionValues&) const override {
        return false;
    }

  private:
    std::unique_ptr<runtime::Driver> driver_;
    Open open_;
};

void apply(const chip::DriverSettings& settings, usb::DeviceOptions& options) {
    if (settings.standard_clock) options.performance = usb::Performance::high;
    if (settings.multiple_endpoints) options.endpoints = usb::Endpoints::multiple;
    if (!settings.firmware.empty()) options.firmware = settings.firmware;
}

/// A model without what comes after its last chip operator, and one of each of its inputs.
struct ChipPart {
    model::Model model;
    std::vector<std::vector<std::byte>> inputs;
};

Result<ChipPart> chip_part(const chip::TrafficRuns& runs) {
    const auto packages = REEF_TRY(in_place(packages_of(runs.model), runs.place));
    if (packages.empty()) {
        return fail(Cause::bad_input, "not compiled for the Edge TPU", runs.place,
                    "compile it for the Edge TPU (`target` edgetpu)");
    }
    const CompiledOperator& last = packages.back();
    if (last.subgraph != 0) {
        return fail(Cause::unsupported,
                    fmt::format("not modelled: a chip operator in subgraph {}", last.subgraph),
                    runs.place, "only the first subgraph is run");
    }
    return ChipPart{up_to(runs.model, last), REEF_TRY(runs.inputs(runs.model.subgraphs[0]))};
}

/// Opens the device that `open` makes, runs and closes.
Status run_on(const std::string& device, RecordedDriver::Open open, const ChipPart& part,
              const chip::TrafficRuns& runs) {
    runtime::Registry registry;
    registry.add_driver(std::make_unique<RecordedDriver>(std::move(open)));
    auto session = REEF_TRY(
        in_place(runtime::Session::open(part.model, {.devices = {device}, .registry = &registry}),
                 runs.place));
    for (std::size_t i = 0; i < session.input_count(); ++i)
        std::ranges::copy(part.inputs[i], session.input(i).begin());
    for (unsigned run = 0; run < runs.runs; ++run)
        REEF_CHECK(in_place(session.run(), fmt::format("run {}", run)));
    return {};
}

/// Traffic can be had without what is missing.
Error with_way_out(Error error) {
    if (error.cause != Cause::device_missing && error.cause != Cause::device_denied) return error;
    std::string hint = error.hint.empty() ? std::string() : error.hint + "; ";
    hint += "`device` edgetpu:sim records the same traffic without a stick";
    return std::move(error).with_hint(std::move(hint));
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
        const ChipPart part = REEF_TRY(chip_part(runs));
        const auto open = [&](const runtime::DeviceUri&, const runtime::OptionValues&,
                              int) -> Result<DrivenChip> {
            DrivenChip chip{.bus = bus, .options = {}, .uri = {}, .kernel = "replayed"};
            apply(runs.driver, chip.options);
            return chip;
        };
        return chip::Replayed{run_on("edgetpu:replay:recording", open, part, runs)};
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
    usb::DeviceOptions options;
    apply(driver, options);
    if (auto opened = usb::Device::open(recorder, options); !opened)
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
    const auto uri = runtime::DeviceUri::parse(device);
    if (!uri || uri->family != family() || uri->backend == backend::replayed)
        return fail(Cause::bad_argument, fmt::format("'{}' is no device with USB traffic", device),
                    {}, "edgetpu:usb, edgetpu:usb:PORT, edgetpu:sim or edgetpu:null");
    const ChipPart part = REEF_TRY(chip_part(runs));
    std::shared_ptr<usb::RecordingBus> recorder;
    const auto open = [&](const runtime::DeviceUri& at, const runtime::OptionValues& options,
                          int threads) -> Result<DrivenChip> {
        if (at.backend == backend::simulated && options.flag(option::strict))
            return fail(Cause::bad_argument, "strict runs do without USB: there is no traffic");
        DrivenChip chip = REEF_TRY(driven_chip(at, options, threads));
        apply(runs.driver, chip.options);
        recorder = std::make_shared<usb::RecordingBus>(std::move(chip.bus));
        chip.bus = recorder;
        return chip;
    };
    auto done = run_on(device, open, part, runs);
    // A stick that leaves in the midst was there.
    const bool nothing_there = recorder == nullptr || recorder->recording().text.empty();
    if (!done && nothing_there) done = std::unexpected(with_way_out(std::move(done.error())));
    // What is wrong before there is a device is the model's matter, or the command's.
    if (recorder == nullptr) return std::unexpected(std::move(done.error()));
    return chip::RecordedRuns{std::make_unique<UsbTraffic>(recorder->recording()), std::move(done)};
}

Result<std::unique_ptr<chip::Traffic>> TrafficRecorder::read(const std::string& path) const {
    return std::make_unique<UsbTraffic>(REEF_TRY(usb::read_recording(path)));
}

}  // namespace reef::edgetpu
