#include "reef/edgetpu/device/driver.h"

#include <fmt/format.h>

#include "chip_program.h"
#include "debugger_opener.h"
#include "driven_device.h"
#include "edgetpu/compiler/compiler_part.h"
#include "edgetpu/device/stick_doctor.h"
#include "edgetpu/inspect/disassembler.h"
#include "edgetpu/inspect/inspection.h"
#include "edgetpu/params/parameter_reader.h"
#include "edgetpu/retarget/retargeter.h"
#include "estimator.h"
#include "layer_gatherer.h"
#include "reef/edgetpu/numerics.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/runtime/arithmetic.h"
#include "traffic_recorder.h"
#include "watched_device.h"

namespace reef::edgetpu {
namespace {

using runtime::Capability;
using runtime::Naming;
using runtime::OptionType;

constexpr std::string_view family_name = "edgetpu";
constexpr std::string_view simulated = "sim", on_usb = "usb", replayed = "replay", null = "null";

namespace option {
constexpr const char* clock = "clock";
constexpr const char* endpoints = "endpoints";
constexpr const char* firmware = "firmware";
constexpr const char* strict = "strict";
constexpr const char* engine = "engine";
constexpr const char* random_seed = "random_seed";
constexpr const char* most_steps = "most_steps";
constexpr const char* most_scalar_instructions = "most_scalar_instructions";
}  // namespace option
constexpr const char *maximum_clock = "maximum", *high_clock = "high", *medium_clock = "medium",
                     *low_clock = "low";
constexpr const char* standard_clock = "standard";  ///< the vendor's name of the high one
constexpr const char *single_endpoint = "single", *multiple_endpoints = "multiple";
constexpr const char* plain_engine = "plain";

std::vector<runtime::BackendInfo> all_backends() {
    return {
        {.backend = std::string(simulated),
         .sentence = "a simulated chip behind a simulated stick",
         .naming = Naming::optional,
         .name_means = "NAME",
         .capabilities = {Capability::computes, Capability::simulated, Capability::strict,
                          Capability::debug, Capability::layers, Capability::record}},
        {.backend = std::string(on_usb),
         .sentence = "a stick on the system's USB; without a port, the first",
         .naming = Naming::optional,
         .name_means = "PORT",
         .capabilities = {Capability::computes, Capability::debug, Capability::record},
         .one_per_process = true},
        {.backend = std::string(replayed),
         .sentence = "a recorded stick, which answers as it did when the host does what it did",
         .naming = Naming::required,
         .name_means = "FILE"},
        {.backend = std::string(null),
         .sentence = "a simulated stick that computes nothing and answers at once",
         .capabilities = {Capability::debug, Capability::record}},
    };
}

std::vector<runtime::OptionInfo> all_options() {
    const SimulatorOptions simulator;
    const std::vector<std::string> of_stick = {std::string(on_usb), std::string(replayed),
                                               std::string(null)};
    const std::vector<std::string> of_simulator = {std::string(simulated)};
    return {
        {.name = option::clock,
         .type = OptionType::choice,
         .standard = maximum_clock,
         .sentence = "clock of the chip: 500, 250, 125 or 62.5 MHz; standard is the same as high",
         .choices = {maximum_clock, high_clock, medium_clock, low_clock, standard_clock},
         .backends = of_stick},
        {.name = option::endpoints,
         .type = OptionType::choice,
         .standard = single_endpoint,
         .sentence = "single: headers tell instructions, inputs and parameters apart; multiple: "
                     "each has an endpoint of its own",
         .choices = {single_endpoint, multiple_endpoints},
         .backends = of_stick},
        {.name = option::firmware,
         .type = OptionType::file,
         .sentence = "for a stick that has none; else the first that is found",
         .backends = {std::string(on_usb), std::string(replayed)}},
        {.name = option::strict,
         .type = OptionType::flag,
         .standard = false,
         .sentence = "watches what programs do, and reports findings; without the driver, and "
                     "shared with no other session",
         .backends = of_simulator},
        {.name = option::engine,
         .type = OptionType::choice,
         .standard = "fast",
         .sentence = "engines of tensor instructions; they give the same bytes",
         .choices = {"fast", plain_engine},
         .backends = of_simulator},
        {.name = option::random_seed,
         .type = OptionType::integer,
         .sentence = "engines advance in a random order from this seed; else in a fixed one",
         .backends = of_simulator},
        {.name = option::most_steps,
         .type = OptionType::integer,
         .standard = static_cast<std::int64_t>(simulator.most_steps),
         .sentence = "steps after which a program is stopped",
         .least = 1,
         .backends = of_simulator},
        {.name = option::most_scalar_instructions,
         .type = OptionType::integer,
         .standard = static_cast<std::int64_t>(simulator.most_scalar_instructions),
         .sentence = "scalar instructions after which a program is stopped",
         .least = 1,
         .backends = of_simulator},
    };
}

SimulatorOptions simulator_options(const runtime::OptionValues& options, int threads) {
    SimulatorOptions simulator;
    simulator.strict = options.flag(option::strict);
    if (options.text(option::engine) == plain_engine) simulator.engine = EngineKind::plain;
    if (options.given(option::random_seed))
        simulator.random_seed = static_cast<std::uint64_t>(options.integer(option::random_seed));
    simulator.most_steps = static_cast<std::uint64_t>(options.integer(option::most_steps));
    simulator.most_scalar_instructions =
        static_cast<std::uint64_t>(options.integer(option::most_scalar_instructions));
    simulator.threads = threads;
    return simulator;
}

bool is_strict(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    return device.backend == simulated && options.flag(option::strict);
}

using Opened = Result<std::shared_ptr<runtime::Device>>;

Opened open_simulated(const runtime::DeviceUri& device, const runtime::OptionValues& options,
                      int threads) {
    const SimulatorOptions simulator = simulator_options(options, threads);
    if (simulator.strict) return watched_device(device.device(), simulator);
    const std::string port = "sim";
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.port = port, .has_firmware = true, .faults = {}},
              std::make_unique<usb::SimulatorCore>(simulator));
    return open_driven({.bus = bus,
                        .options = {.port = port, .firmware = {}, .place = device.device()},
                        .uri = device.device(),
                        .kernel = "compiled program, simulated",
                        .simulated = bus});
}

usb::Performance performance(const runtime::OptionValues& options) {
    const std::string& name = options.text(option::clock);
    if (name == low_clock) return usb::Performance::low;
    if (name == medium_clock) return usb::Performance::medium;
    if (name == high_clock || name == standard_clock) return usb::Performance::high;
    return usb::Performance::max;
}

usb::Endpoints endpoints(const runtime::OptionValues& options) {
    return options.text(option::endpoints) == multiple_endpoints ? usb::Endpoints::multiple
                                                                 : usb::Endpoints::single;
}

Opened open_stick(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    return open_driven({.bus = REEF_TRY(usb::libusb_bus()),
                        .options = {.port = device.name,
                                    .performance = performance(options),
                                    .endpoints = endpoints(options),
                                    .firmware = options.text(option::firmware)},
                        .uri = {},
                        .kernel = "compiled program"});
}

Opened open_replay(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    auto recording = REEF_TRY(usb::read_recording(device.name));
    auto bus = REEF_TRY(in_place(usb::replay_bus(std::move(recording)), device.name));
    return open_driven({.bus = std::move(bus),
                        .options = {.port = {},
                                    .performance = performance(options),
                                    .endpoints = endpoints(options),
                                    .firmware = options.text(option::firmware),
                                    .place = device.device()},
                        .uri = device.device(),
                        .kernel = "compiled program, replayed"});
}

Opened open_null(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    auto programs = std::make_shared<usb::NullPrograms>();
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.has_firmware = true, .faults = {}}, std::make_unique<usb::NullCore>(programs));
    return open_driven({.bus = std::move(bus),
                        .options = {.port = {},
                                    .performance = performance(options),
                                    .endpoints = endpoints(options),
                                    .firmware = {},
                                    .place = device.device()},
                        .uri = device.device(),
                        .kernel = "compiled program, not computed",
                        .null_programs = std::move(programs)});
}

class EdgeTpuDriver final : public runtime::Driver {
  public:
    [[nodiscard]] std::string_view family() const override { return family_name; }
    [[nodiscard]] std::string_view sentence() const override {
        return "Google's Edge TPU: sticks on USB, and what stands in for them";
    }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return backends_;
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override { return options_; }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return words_; }
    [[nodiscard]] runtime::Enumeration enumerate() const override;
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return edgetpu::is_compiled(op);
    }
    [[nodiscard]] Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        const model::Subgraph& graph, const model::Operator& op) const override;
    [[nodiscard]] Opened open(const runtime::DeviceUri& device,
                              const runtime::OptionValues& options, int threads) const override;
    [[nodiscard]] bool shares(const runtime::DeviceUri& device,
                              const runtime::OptionValues& options) const override {
        // A recording is one host's; what two sessions do together was not recorded.
        return !is_strict(device, options) && device.backend != replayed;
    }

  private:
    std::vector<runtime::BackendInfo> backends_ = all_backends();
    std::vector<runtime::OptionInfo> options_ = all_options();
    runtime::PlacementWords words_ = {
        .taken = "compiled for the Edge TPU",
        .left = "not part of a compiled program: the compiler left it to the CPU",
        .chip = "the Edge TPU",
        .make = "compile it for the Edge TPU",
        .elsewhere = "run it with `device` edgetpu:sim or on an Edge TPU"};
};

runtime::Enumeration EdgeTpuDriver::enumerate() const {
    runtime::Enumeration found{.devices = {{"edgetpu:sim", "ready", "a simulated chip"}},
                               .buses = {{"usb"}}};
    const auto bus = usb::libusb_bus();
    if (!bus) {
        found.buses[0].problem = bus.error().message();
        return found;
    }
    const auto sticks = (*bus)->list();
    if (!sticks) {
        found.buses[0].problem = sticks.error().what;
        return found;
    }
    for (const auto& stick : *sticks)
        found.devices.push_back({fmt::format("edgetpu:usb:{}", stick.port), usb::state_of(stick),
                                 fmt::format("{:04x}:{:04x}, {}", stick.vendor, stick.product,
                                             usb::to_string(stick.speed))});
    return found;
}

Result<std::shared_ptr<const runtime::Program>> EdgeTpuDriver::prepare(
    const runtime::DeviceUri& device, const runtime::OptionValues& options,
    const model::Subgraph& graph, const model::Operator& op) const {
    auto program = std::make_shared<ChipProgram>();
    program->package = REEF_TRY(package_of(op));
    if (!is_strict(device, options))
        program->driven = REEF_TRY(usb::Program::prepare(program->package));
    // What the simulator does not model is refused now, by name, and not in a run.
    if (device.backend == simulated) (void)REEF_TRY(SimulatedPackage::prepare(program->package));
    const Executable* computing = REEF_TRY(computing_executable(program->package));
    program->binding = REEF_TRY(LayerBinding::of(computing->inputs, computing->outputs, graph, op));
    return program;
}

Opened EdgeTpuDriver::open(const runtime::DeviceUri& device, const runtime::OptionValues& options,
                           int threads) const {
    if (device.backend == simulated) return open_simulated(device, options, threads);
    if (device.backend == replayed) return open_replay(device, options);
    if (device.backend == null) return open_null(device, options);
    return open_stick(device, options);
}

class Arithmetic final : public runtime::ChipArithmetic {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] const cpu::Arithmetic& arithmetic() const override {
        return edgetpu::arithmetic();
    }
    [[nodiscard]] std::string_view sentence() const override {
        return "float32 scales, ties to even";
    }
};

}  // namespace

std::unique_ptr<runtime::Driver> driver() {
    return std::make_unique<EdgeTpuDriver>();
}

void enrol(runtime::Registry& registry) {
    registry.add_driver(driver());
    registry.add_part<runtime::ChipArithmetic>(std::make_unique<Arithmetic>());
    registry.add_part<chip::Inspector>(std::make_unique<Inspector>());
    registry.add_part<chip::Disassembler>(std::make_unique<Disassembler>());
    registry.add_part<chip::DebuggerOpener>(std::make_unique<DebuggerOpener>());
    registry.add_part<chip::Estimator>(std::make_unique<Estimator>());
    registry.add_part<chip::Compiler>(std::make_unique<CompilerPart>());
    registry.add_part<chip::TargetChecker>(std::make_unique<TargetCheckerPart>());
    registry.add_part<chip::LayerGatherer>(std::make_unique<LayerGatherer>());
    registry.add_part<chip::ParameterReader>(std::make_unique<ParameterReader>());
    registry.add_part<chip::TrafficRecorder>(std::make_unique<TrafficRecorder>());
    registry.add_part<chip::Doctor>(std::make_unique<StickDoctor>());
    registry.add_part<chip::Retargeter>(std::make_unique<Retargeter>());
}

}  // namespace reef::edgetpu
