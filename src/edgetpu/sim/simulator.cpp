#include "reef/edgetpu/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "host_memory.h"
#include "machine.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/parameter_memory.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu {
namespace {

/// One executable: its translated streams and the host memory that it works on.
struct Prepared {
    Executable executable;
    std::vector<std::vector<std::byte>> streams;
    sim::Program program;
    std::optional<sim::HostMemory> host;
};

Result<Prepared> prepare_executable(const Executable& executable) {
    Prepared prepared;
    prepared.executable = executable;
    std::vector<Bytes> views;
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        prepared.streams.push_back(REEF_TRY(with_base_addresses(executable, i)));
        views.emplace_back(prepared.streams.back());
    }
    prepared.program = REEF_TRY(sim::translate_program(views));
    prepared.program.narrow_bound =
        static_cast<std::uint64_t>(std::max(executable.used_narrow_memory_bytes_per_tile, 0));
    prepared.host = REEF_TRY(sim::HostMemory::create(prepared.executable));
    return prepared;
}

}  // namespace

struct Simulator::Chip {
    explicit Chip(const SimulatorOptions& options) : machine(machine_options(options)) {}

    static sim::MachineOptions machine_options(const SimulatorOptions& options) {
        sim::MachineOptions out{
            .engine = options.engine, .random_seed = options.random_seed, .strict = options.strict};
        if (options.most_steps) out.most_steps = *options.most_steps;
        return out;
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
    std::optional<Prepared> caching;
    Prepared computing;
    std::vector<OutputUnpacker> unpackers;
    std::optional<ParameterRows> rows;  ///< that caching fills

    static std::uint64_t next_id() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }
    static Status run_one(Simulator::Chip& chip, Prepared& prepared);
    Status load(Simulator::Chip& chip);
    /// Rows that this package's programs loaded and none of its instructions has read.
    void report_unread_rows(Simulator::Chip& chip) const;
};

namespace {

Status check(const Package& package) {
    if (!package.multi_chip.empty())
        return fail(Cause::unsupported, "not modelled: a package for several chips", {},
                    "compile the model for one chip");
    for (const auto& executable : package.executables)
        if (executable.chip != "beagle")
            return fail(Cause::unsupported, fmt::format("not modelled: chip '{}'", executable.chip),
                        {}, "only the Edge TPU (beagle) is known");
    return {};
}

const Executable* computing_executable(const Package& package) {
    for (const auto type : {ExecutableType::execution_only, ExecutableType::stand_alone})
        if (const auto* executable = package.find(type)) return executable;
    return nullptr;
}

}  // namespace

SimulatedPackage::SimulatedPackage(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimulatedPackage::SimulatedPackage(SimulatedPackage&&) noexcept = default;
SimulatedPackage& SimulatedPackage::operator=(SimulatedPackage&&) noexcept = default;
SimulatedPackage::~SimulatedPackage() = default;

Result<SimulatedPackage> SimulatedPackage::prepare(const Package& package) {
    REEF_CHECK(check(package));
    const Executable* computing = computing_executable(package);
    if (computing == nullptr)
        return fail(Cause::bad_input, "the package has no executable that computes", {},
                    "it holds only parameters");
    auto impl = std::make_unique<Impl>();
    impl->computing =
        REEF_TRY(in_place(prepare_executable(*computing), to_string(computing->type)));
    if (const auto* caching = package.find(ExecutableType::parameter_caching)) {
        impl->caching = REEF_TRY(in_place(prepare_executable(*caching), to_string(caching->type)));
        impl->rows = parameter_rows_of(*caching);
    }
    for (const auto& layer : computing->outputs)
        impl->unpackers.push_back(REEF_TRY(in_place(OutputUnpacker::prepare(layer), layer.name)));
    return SimulatedPackage(std::move(impl));
}

const Executable& SimulatedPackage::executable() const {
    return impl_->computing.executable;
}

Status SimulatedPackage::Impl::run_one(Simulator::Chip& chip, Prepared& prepared) {
    sim::HostMemory& host = *prepared.host;
    const std::string place = to_string(prepared.executable.type);
    host.begin_run();
    REEF_CHECK(in_place(chip.machine.run(prepared.program, host), place));
    if (host.not_taken() != 0 || host.not_sent() != 0 || host.not_placed() != 0)
        return fail(Cause::bad_input,
                    fmt::format("the program ends with {} bytes not taken from the host, {} not "
                                "sent to it and {} that it has no place for",
                                host.not_taken(), host.not_sent(), host.not_placed()),
                    place);
    return {};
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
    REEF_CHECK(run_one(chip, *caching));
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
    Prepared& computing = impl_->computing;
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
    REEF_CHECK(Impl::run_one(chip, computing));
    if (monitor != nullptr) impl_->report_unread_rows(chip);
    for (std::size_t i = 0; i < outputs.size(); ++i)
        impl_->unpackers[i].run(computing.host->output(i), outputs[i]);
    return {};
}

}  // namespace reef::edgetpu
