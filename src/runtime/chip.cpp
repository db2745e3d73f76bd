#include "chip.h"

#include <fmt/format.h>

#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::runtime {

using namespace edgetpu;

Result<std::shared_ptr<Chip>> Chip::open(const DeviceUri& uri, const SessionOptions& options) {
    auto chip = std::make_shared<Chip>();
    usb::DeviceOptions device{
        .port = uri.rest, .maximum_clock = options.maximum_clock, .firmware = options.firmware};
    std::shared_ptr<usb::Bus> bus;
    if (uri.backend == "sim") {
        chip->simulated_ = std::make_shared<usb::SimulatedBus>();
        device.port = "sim";
        device.place = uri.text();
        SimulatorOptions simulator = options.simulator;
        simulator.threads = options.threads;
        chip->simulated_->plug({.port = device.port, .has_firmware = true, .faults = {}},
                               std::make_unique<usb::SimulatorCore>(simulator));
        bus = chip->simulated_;
    } else {
        bus = REEF_TRY(usb::libusb_bus());
    }
    chip->device_ = REEF_TRY(usb::Device::open(std::move(bus), device));
    return chip;
}

Status Chip::run(const std::shared_ptr<const usb::Program>& program, std::span<const Bytes> inputs,
                 std::span<const MutableBytes> outputs) {
    auto done = device_->run(program, inputs, outputs);
    if (done || simulated_ == nullptr || done.error().cause != Cause::device_failed) return done;
    const std::string why = simulated_->standstill(port());
    if (why.empty()) return done;
    // Not the device's fault: the program's.
    Error error = std::move(done.error());
    error.cause = Cause::bad_input;
    error.what += fmt::format("; the simulated chip: {}", why);
    error.hint.clear();  // the driver's is about a stick; the chip has said its own
    return std::unexpected(std::move(error));
}

Chips::Chips() : impl_(std::make_unique<Impl>()) {}
Chips::~Chips() = default;

const std::shared_ptr<Chips>& Chips::of_process() {
    static const auto chips = std::make_shared<Chips>();
    return chips;
}

Result<std::shared_ptr<Chip>> Chips::Impl::get(const DeviceUri& uri,
                                               const SessionOptions& options) {
    const std::lock_guard lock(mutex);
    const bool any_stick = uri.backend == "usb" && uri.rest.empty();
    const std::string stick = uri.family + ":usb:";
    for (const auto& [name, chip] : open)
        if (name == uri.text() || (any_stick && name.starts_with(stick)))
            if (auto found = chip.lock()) return found;
    auto chip = REEF_TRY(Chip::open(uri, options));
    std::erase_if(open, [](const auto& each) { return each.second.expired(); });
    open[chip->simulated() ? uri.text() : stick + chip->port()] = chip;
    return chip;
}

}  // namespace reef::runtime
