#include "reef/edgetpu/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

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
    std::uint64_t resident_token = 0;
    /// Packages whose caching programs ran since resident_token came, by
    /// SimulatedPackage::Impl::id: co-compiled models share a token.
    std::vector<std::uint64_t> resident;
    /// By resident: the rows that its parameters fill.
    std::vector<std::optional<ParameterRows>> rows;
    /// By resident: the number of the run that loaded its parameters.
    std::vector<std::uint32_t> loaded_by;
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

// A new token's parameters take the place of the old ones; equal tokens stay side by side unless
// they fill the same rows.
Status SimulatedPackage::Impl::load(Simulator::Chip& chip) {
    if (!caching) return {};
    const std::uint64_t token = caching->executable.parameter_caching_token;
    const auto lies_in_its_rows = [&](const auto& other) {
        return other && rows && overlap(*other, *rows);
    };
    const bool there = std::ranges::find(chip.resident, id) != chip.resident.end();
    if (token == 0 || token != chip.resident_token ||
        (!there && std::ranges::any_of(chip.rows, lies_in_its_rows))) {
        chip.resident.clear();
        chip.rows.clear();
        chip.loaded_by.clear();
    } else if (there) {
        return {};
    }
    REEF_CHECK(sim::run(chip.machine, *caching));
    chip.resident_token = token;
    chip.resident.push_back(id);
    chip.rows.push_back(rows);
    if (auto* monitor = chip.machine.monitor()) chip.loaded_by.push_back(monitor->run());
    return {};
}

void SimulatedPackage::Impl::report_unread_rows(Simulator::Chip& chip) const {
    sim::Monitor& monitor = *chip.machine.monitor();
    monitor.report_unread_rows(monitor.run());
    for (std::size_t i = 0; i < chip.loaded_by.size(); ++i)
        if (chip.resident[i] == id) monitor.report_unread_rows(chip.loaded_by[i]);
}

Status SimulatedPackage::run(Simulator& simulator, std::span<const Bytes> inputs,
                             std::span<const MutableBytes> outputs) {
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
    REEF_CHECK(impl_->load(chip));
    REEF_CHECK(sim::run(chip.machine, computing));
    if (monitor != nullptr) impl_->report_unread_rows(chip);
    for (std::size_t i = 0; i < outputs.size(); ++i)
        impl_->unpackers[i].run(computing.host->output(i), outputs[i]);
    return {};
}

}  // namespace reef::edgetpu
