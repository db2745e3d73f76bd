#include "driven_chip.h"

#include <utility>

#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::edgetpu {
namespace {

DrivenChip simulated_chip(const runtime::DeviceUri& device, const runtime::OptionValues& options,
                          int threads) {
    const SimulatorOptions simulator = simulator_options(options, threads);
    const std::string port = "sim";
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.port = port, .has_firmware = true, .faults = {}},
              std::make_unique<usb::SimulatorCore>(simulator));
    return DrivenChip{.bus = bus,
                      .options = {.port = port, .firmware = {}, .place = device.device()},
                      .uri = device.device(),
                      .kernel = "compiled program, simulated",
                      .simulated = bus};
}

usb::Performance performance(const runtime::OptionValues& options) {
    const std::string& name = options.text(option::clock);
    if (name == choice::low_clock) return usb::Performance::low;
    if (name == choice::medium_clock) return usb::Performance::medium;
    if (name == choice::high_clock || name == choice::standard_clock) return usb::Performance::high;
    return usb::Performance::max;
}

usb::Endpoints endpoints(const runtime::OptionValues& options) {
    return options.text(option::endpoints) == choice::multiple_endpoints ? usb::Endpoints::multiple
                                                                         : usb::Endpoints::single;
}

Result<DrivenChip> stick(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    return DrivenChip{.bus = REEF_TRY(usb::libusb_bus()),
                      .options = {.port = device.name,
                                  .performance = performance(options),
                                  .endpoints = endpoints(options),
                                  .firmware = options.text(option::firmware)},
                      .uri = {},
                      .kernel = "compiled program"};
}

Result<DrivenChip> replayed_chip(const runtime::DeviceUri& device,
                                 const runtime::OptionValues& options) {
    auto recording = REEF_TRY(usb::read_recording(device.name));
    auto bus = REEF_TRY(in_place(usb::replay_bus(std::move(recording)), device.name));
    return DrivenChip{.bus = std::move(bus),
                      .options = {.port = {},
                                  .performance = performance(options),
                                  .endpoints = endpoints(options),
                                  .firmware = options.text(option::firmware),
                                  .place = device.device()},
                      .uri = device.device(),
                      .kernel = "compiled program, replayed"};
}

DrivenChip null_chip(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    auto programs = std::make_shared<usb::NullPrograms>();
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.has_firmware = true, .faults = {}}, std::make_unique<usb::NullCore>(programs));
    return DrivenChip{.bus = std::move(bus),
                      .options = {.port = {},
                                  .performance = performance(options),
                                  .endpoints = endpoints(options),
                                  .firmware = {},
                                  .place = device.device()},
                      .uri = device.device(),
                      .kernel = "compiled program, not computed",
                      .null_programs = std::move(programs)};
}

}  // namespace

SimulatorOptions simulator_options(const runtime::OptionValues& options, int threads) {
    SimulatorOptions simulator;
    simulator.strict = options.flag(option::strict);
    if (options.text(option::engine) == choice::plain_engine) simulator.engine = EngineKind::plain;
    if (options.given(option::random_seed))
        simulator.random_seed = static_cast<std::uint64_t>(options.integer(option::random_seed));
    simulator.most_steps = static_cast<std::uint64_t>(options.integer(option::most_steps));
    simulator.most_scalar_instructions =
        static_cast<std::uint64_t>(options.integer(option::most_scalar_instructions));
    simulator.threads = threads;
    return simulator;
}

Result<DrivenChip> driven_chip(const runtime::DeviceUri& device,
                               const runtime::OptionValues& options, int threads) {
    if (device.backend == backend::simulated) return simulated_chip(device, options, threads);
    if (device.backend == backend::replayed) return replayed_chip(device, options);
    if (device.backend == backend::null) return null_chip(device, options);
    return stick(device, options);
}

}  // namespace reef::edgetpu
