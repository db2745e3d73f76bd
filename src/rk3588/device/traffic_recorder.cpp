#include "rk3588/device/traffic_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/device/driver.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/device/ports.h"
#include "rk3588/drm/recording.h"

namespace reef::rk3588 {
namespace {

using OpenPort = std::function<Result<std::unique_ptr<drm::Port>>(const runtime::DeviceUri&,
                                                                  const runtime::OptionValues&)>;

/// The family's driver, but what it opens is behind a kernel that the recorder knows.
class BehindRecorder final : public runtime::Driver {
  public:
    explicit BehindRecorder(OpenPort open) : open_(std::move(open)) {}
    [[nodiscard]] std::string_view family() const override { return driver_.family(); }
    [[nodiscard]] std::string_view sentence() const override { return driver_.sentence(); }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return driver_.backends();
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override {
        return driver_.options();
    }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return driver_.words(); }
    [[nodiscard]] runtime::Enumeration enumerate() const override { return {}; }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return driver_.is_compiled(op);
    }
    [[nodiscard]] Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        const model::Subgraph& graph, const model::Operator& op) const override {
        return driver_.prepare(device, options, graph, op);
    }
    [[nodiscard]] Result<std::shared_ptr<runtime::Device>> open(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        int) const override {
        return make_drm_device(device.text(), REEF_TRY(open_(device, options)),
                               sram_of(device, options));
    }
    [[nodiscard]] bool shares(const runtime::DeviceUri&,
                              const runtime::OptionValues&) const override {
        return false;
    }

  private:
    rk3588::Driver driver_;
    OpenPort open_;
};

/// Runs the model on the device that `open` makes, and closes it.
Status run_on(const std::string& device, OpenPort open, const chip::TrafficRuns& runs) {
    if (runs.driver.standard_clock || runs.driver.multiple_endpoints ||
        !runs.driver.firmware.empty())
        return fail(Cause::bad_argument,
                    "an RK3588 has no such settings: clock, endpoints and "
                    "firmware are a stick's");
    const auto inputs = REEF_TRY(runs.inputs(runs.model.subgraphs[0]));
    runtime::Registry registry;
    registry.add_driver(std::make_unique<BehindRecorder>(std::move(open)));
    auto session = REEF_TRY(
        in_place(runtime::Session::open(runs.model, {.devices = {device}, .registry = &registry}),
                 runs.place));
    for (std::size_t i = 0; i < session.input_count(); ++i)
        std::ranges::copy(inputs[i], session.input(i).begin());
    for (unsigned run = 0; run < runs.runs; ++run)
        REEF_CHECK(in_place(session.run(), fmt::format("run {}", run)));
    return {};
}

class KernelTraffic final : public chip::Traffic {
  public:
    explicit KernelTraffic(drm::Recording recording) : recording_(std::move(recording)) {}

    [[nodiscard]] std::size_t items() const override { return recording_.calls.size(); }
    [[nodiscard]] std::size_t payload_bytes() const override {
        std::size_t bytes = 0;
        for (const auto& call : recording_.calls) bytes += call.bytes();
        return bytes;
    }
    [[nodiscard]] Result<bool> holds_transfers() const override {
        return std::ranges::any_of(recording_.calls, drm::is_work);
    }
    [[nodiscard]] Status write(const std::string& path) const override {
        return drm::write_recording(path, recording_);
    }
    [[nodiscard]] Result<std::vector<std::string>> view() const override {
        std::vector<std::string> lines;
        for (const auto& call : recording_.calls) lines.push_back(drm::text_of(call));
        return lines;
    }
    [[nodiscard]] Result<chip::Replayed> replay(const chip::TrafficRuns& runs) const override {
        const auto replayed = drm::replaying_kernel(recording_);
        auto done = run_on(
            recording_.device,
            [&](const runtime::DeviceUri& device, const runtime::OptionValues& options) {
                return open_port_of(device, options, replayed);
            },
            runs);
        if (!replayed->difference().empty())
            done = fail(Cause::bad_input, replayed->difference());
        else if (done && replayed->answered() < recording_.calls.size())
            done = fail(Cause::bad_input,
                        fmt::format("the run ended before call {}: {}", replayed->answered(),
                                    drm::text_of(recording_.calls[replayed->answered()])));
        return chip::Replayed{std::move(done)};
    }
    [[nodiscard]] Result<chip::StartAgreement> start(const chip::DriverSettings&) const override {
        const auto work = std::ranges::find_if(recording_.calls, drm::is_work);
        drm::Recording beginning{recording_.device, {recording_.calls.begin(), work}};
        const auto replayed = drm::replaying_kernel(beginning);
        const BehindRecorder driver({});
        const auto uri = REEF_TRY(runtime::DeviceUri::parse(recording_.device));
        const auto options = REEF_TRY(runtime::OptionValues::check(driver.options(), uri));
        chip::StartAgreement out;
        if (auto port = open_port_of(uri, options, replayed); !port)
            out.done = std::unexpected(std::move(port.error()));
        out.recorded = beginning.calls.size();
        out.same = out.same_values = replayed->answered();
        out.driven = out.same + (replayed->difference().empty() ? 0 : 1);
        return out;
    }

  private:
    drm::Recording recording_;
};

Status check_device(const std::string& device, std::string_view family) {
    const auto uri = runtime::DeviceUri::parse(device);
    if (uri && uri->family == family && (uri->backend == "rknpu" || uri->backend == "rocket"))
        return {};
    return fail(Cause::bad_argument,
                fmt::format("'{}' is no device behind a kernel's driver", device), {},
                "rk3588:rknpu and rk3588:rocket are, also with ?kernel=simulated");
}

}  // namespace

Result<chip::RecordedRuns> TrafficRecorder::record(const std::string& device,
                                                   const chip::TrafficRuns& runs) const {
    REEF_CHECK(check_device(device, family()));
    if (std::ranges::none_of(runs.model.subgraphs[0].operators, rk3588::is_compiled))
        return fail(Cause::bad_input, "not compiled for the RK3588", runs.place);
    drm::Recording recording{device, {}};
    auto done = run_on(
        device,
        [&](const runtime::DeviceUri& at, const runtime::OptionValues& options) {
            return open_port_of(at, options,
                                drm::recording_kernel(kernel_of(at, options), recording));
        },
        runs);
    // What is wrong before there is a device is the model's matter, or the command's.
    if (recording.calls.empty()) return std::unexpected(std::move(done.error()));
    return chip::RecordedRuns{std::make_unique<KernelTraffic>(std::move(recording)),
                              std::move(done)};
}

Result<std::unique_ptr<chip::Traffic>> TrafficRecorder::read(const std::string& path) const {
    auto recording = REEF_TRY(drm::read_recording(path));
    REEF_CHECK(in_place(check_device(recording.device, family()), path));
    return std::make_unique<KernelTraffic>(std::move(recording));
}

}  // namespace reef::rk3588
