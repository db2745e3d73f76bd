#include "reef/edgetpu/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "edgetpu/package/resident_parameters.h"
#include "prepared_executable.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/parameter_memory.h"

namespace reef::edgetpu {
struct Simulator::Chip {
    explicit Chip(const SimulatorOptions& options) : machine(machine_options(options)) {}

    static sim::MachineOptions machine_options(const SimulatorOptions& options) {
        return {.engine = options.engine,
                .random_seed = options.random_seed,
                .strict = options.strict,
                .most_steps = options.most_steps,
                .most_scalar_instructions = options.most_scalar_instructions,
                .threads = options.threads};
    }

    sim::Machine machine;
    /// By SimulatedPackage::Impl::id: co-compiled models share a token.
    ResidentParameters<std::uint64_t> parameters;
    /// By the same: the number of the run that loaded its parameters last.
    std::map<std::uint64_t, std::uint32_t> loaded_by;
};

Simulator::Simulator(const SimulatorOptions& options) : chip_(std::make_unique<Chip>(options)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

std::span<const Finding> Simulator::findings() const {
    const auto* monitor = chip_->machine.monitor();
    return monitor != nullptr ? std::span<const Finding>(monitor->findings())
                              : std::span<const Finding>();
}

struct SimulatedPackage::Impl {
    /// Of no other package of this process, also after this one is gone.
    std::uint64_t id = next_id();
    std::optional<sim::PreparedExecutable> caching;
    sim::PreparedExecutable computing;
    std::vector<OutputUnpacker> unpackers;
    std::optional<ParameterRows> rows;  ///< that caching fills

    static std::uint64_t next_id() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }
    Status load(Simulator::Chip& chip);
    Status run(Simulator::Chip& chip, const RunWatch* watch);
    /// Rows that this package's programs loaded and none of its instructions has read.
    void report_unread_rows(Simulator::Chip& chip) const;
};

SimulatedPackage::SimulatedPackage(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimulatedPackage::SimulatedPackage(SimulatedPackage&&) noexcept = default;
SimulatedPackage& SimulatedPackage::operator=(SimulatedPackage&&) noexcept = default;
SimulatedPackage::~SimulatedPackage() = default;

Result<SimulatedPackage> SimulatedPackage::prepare(const Package& package) {
    REEF_CHECK(sim::check_chip(package));
    const Executable* computing = REEF_TRY(computing_executable(package));
    auto impl = std::make_unique<Impl>();
    impl->computing = REEF_TRY(sim::prepare(*computing));
    if (const auto* caching = package.find(ExecutableType::parameter_caching)) {
        impl->caching = REEF_TRY(sim::prepare(*caching));
        impl->rows = parameter_rows_of(*caching);
    }
    for (const auto& layer : computing->outputs)
        impl->unpackers.push_back(REEF_TRY(in_place(OutputUnpacker::prepare(layer), layer.name)));
    return SimulatedPackage(std::move(impl));
}

const Executable& SimulatedPackage::executable() const {
    return impl_->computing.executable;
}

Status SimulatedPackage::Impl::load(Simulator::Chip& chip) {
    const std::uint64_t token = caching ? caching->executable.parameter_caching_token : 0;
    const auto need = chip.parameters.make_room(
        token, caching.has_value(), rows, [this](std::uint64_t other) { return other == id; });
    if (!need.load) return {};
    REEF_CHECK(sim::run(chip.machine, *caching));
    chip.parameters.add(id, rows);
    if (auto* monitor = chip.machine.monitor()) chip.loaded_by[id] = monitor->run();
    return {};
}

void SimulatedPackage::Impl::report_unread_rows(Simulator::Chip& chip) const {
    sim::Monitor& monitor = *chip.machine.monitor();
    monitor.report_unread_rows(monitor.run());
    if (caching) monitor.report_unread_rows(chip.loaded_by.at(id));
}

// Both programs. What a run that did not end has left in the memories is nobody's.
Status SimulatedPackage::Impl::run(Simulator::Chip& chip, const RunWatch* watch) {
    chip.machine.watch(watch);
    Status ran = load(chip);
    if (ran) ran = sim::run(chip.machine, computing);
    chip.machine.watch(nullptr);
    if (!ran) chip.parameters.forget();
    return ran;
}

Status SimulatedPackage::run(Simulator& simulator, std::span<const Bytes> inputs,
                             std::span<const MutableBytes> outputs, const RunWatch* watch) {
    auto& computing = impl_->computing;
    const auto& layers = computing.executable.inputs;
    if (inputs.size() != layers.size())
        return fail(Cause::bad_argument,
                    fmt::format("{} inputs, the package has {}", inputs.size(), layers.size()));
    if (outputs.size() != impl_->unpackers.size())
        return fail(Cause::bad_argument, fmt::format("{} outputs, the package has {}",
                                                     outputs.size(), impl_->unpackers.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].size() != impl_->unpackers[i].tensor_bytes())
            return fail(Cause::bad_argument,
                        fmt::format("output {} has {} bytes, its layer {}", i, outputs[i].size(),
                                    impl_->unpackers[i].tensor_bytes()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
        REEF_CHECK(pack_input(layers[i], inputs[i], computing.host->input(i)));
    auto& chip = simulator.chip();
    auto* monitor = chip.machine.monitor();
    if (monitor != nullptr) monitor->clear();
    REEF_CHECK(impl_->run(chip, watch));
    if (monitor != nullptr) impl_->report_unread_rows(chip);
    for (std::size_t i = 0; i < outputs.size(); ++i)
        impl_->unpackers[i].run(computing.host->output(i), outputs[i]);
    return {};
}

}  // namespace reef::edgetpu
