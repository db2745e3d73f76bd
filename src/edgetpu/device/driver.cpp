#include "reef/edgetpu/device/driver.h"

#include <fmt/format.h>

#include "chip_program.h"
#include "debugger_opener.h"
#include "driven_chip.h"
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
#include "reef/runtime/arithmetic.h"
#include "traffic_recorder.h"
#include "watched_device.h"

namespace reef::edgetpu {
namespace {

using runtime::Capability;
using runtime::Naming;
using runtime::OptionType;

constexpr std::string_view family_name = "edgetpu";

std::vector<runtime::BackendInfo> all_backends() {
    return {
        {.backend = std::string(backend::simulated),
         .sentence = "a simulated chip behind a simulated stick",
         .naming = Naming::optional,
         .name_means = "NAME",
         .capabilities = {Capability::computes, Capability::simulated, Capability::strict,
                          Capability::debug, Capability::layers, Capability::record}},
        {.backend = std::string(backend::on_usb),
         .sentence = "a stick on the system's USB; without a port, the first",
         .naming = Naming::optional,
         .name_means = "PORT",
         .capabilities = {Capability::computes, Capability::debug, Capability::record},
         .one_per_process = true},
        {.backend = std::string(backend::replayed),
         .sentence = "a recorded stick, which answers as it did when the host does what it did",
         .naming = Naming::required,
         .name_means = "FILE"},
        {.backend = std::string(backend::null),
         .sentence = "a simulated stick that computes nothing and answers at once",
         .capabilities = {Capability::debug, Capability::record}},
    };
}

std::vector<runtime::OptionInfo> all_options() {
    const SimulatorOptions simulator;
    const std::vector<std::string> of_stick = {
        std::string(backend::on_usb), std::string(backend::replayed), std::string(backend::null)};
    const std::vector<std::string> of_simulator = {std::string(backend::simulated)};
    return {
        {.name = option::clock,
         .type = OptionType::choice,
         .standard = choice::maximum_clock,
         .sentence = "clock of the chip: 500, 250, 125 or 62.5 MHz; standard is the same as high",
         .choices = {choice::maximum_clock, choice::high_clock, choice::medium_clock,
                     choice::low_clock, choice::standard_clock},
         .backends = of_stick},
        {.name = option::endpoints,
         .type = OptionType::choice,
         .standard = choice::single_endpoint,
         .sentence = "single: headers tell instructions, inputs and parameters apart; multiple: "
                     "each has an endpoint of its own",
         .choices = {choice::single_endpoint, choice::multiple_endpoints},
         .backends = of_stick},
        {.name = option::firmware,
         .type = OptionType::file,
         .sentence = "for a stick that has none; else the first that is found",
         .backends = {std::string(backend::on_usb), std::string(backend::replayed)}},
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
         .choices = {"fast", choice::plain_engine},
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

bool is_strict(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    return device.backend == backend::simulated && options.flag(option::strict);
}

using Opened = Result<std::shared_ptr<runtime::Device>>;

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
        return !is_strict(device, options) && device.backend != backend::replayed;
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
    if (device.backend == backend::simulated)
        (void)REEF_TRY(SimulatedPackage::prepare(program->package));
    const Executable* computing = REEF_TRY(computing_executable(program->package));
    program->binding = REEF_TRY(LayerBinding::of(computing->inputs, computing->outputs, graph, op));
    return program;
}

Opened EdgeTpuDriver::open(const runtime::DeviceUri& device, const runtime::OptionValues& options,
                           int threads) const {
    if (is_strict(device, options))
        return watched_device(device.device(), simulator_options(options, threads));
    return open_driven(REEF_TRY(driven_chip(device, options, threads)));
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
