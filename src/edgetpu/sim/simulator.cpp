#include "reef/edgetpu/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "machine.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu {
namespace {

using sim::DmaDescriptor;

/// The host's streams of one run, as plain bytes.
class StreamHost final : public sim::HostPort {
  public:
    StreamHost(Bytes parameters, Bytes activations) : sent_{parameters, activations} {}

    bool take(bool activations, std::span<std::uint8_t> unit) override {
        Bytes& stream = sent_[activations ? 1 : 0];
        if (stream.empty()) return false;
        const std::size_t size = std::min(unit.size(), stream.size());
        std::ranges::fill(unit, std::uint8_t{0});
        std::memcpy(unit.data(), stream.data(), size);
        stream = stream.subspan(size);
        return true;
    }
    void give(std::span<const std::uint8_t> unit) override {
        const auto bytes = std::as_bytes(unit);
        received_.insert(received_.end(), bytes.begin(), bytes.end());
    }
    void fire(const DmaDescriptor&) override {}

    [[nodiscard]] Bytes received() const { return received_; }
    [[nodiscard]] std::size_t left() const { return sent_[0].size() + sent_[1].size(); }

  private:
    std::array<Bytes, 2> sent_;
    std::vector<std::byte> received_;
};

/// One executable: its translated streams and what the host sends.
struct Prepared {
    Executable executable;
    TransferPlan plan;
    std::vector<std::vector<std::byte>> streams;
    sim::Program program;
};

Result<Prepared> prepare_executable(const Executable& executable) {
    Prepared prepared;
    prepared.executable = executable;
    prepared.plan = REEF_TRY(plan_transfers(executable));
    std::vector<Bytes> views;
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        prepared.streams.push_back(REEF_TRY(with_base_addresses(executable, i)));
        views.emplace_back(prepared.streams.back());
    }
    prepared.program = REEF_TRY(sim::translate_program(views));
    return prepared;
}

}  // namespace

struct Simulator::Chip {
    explicit Chip(const SimulatorOptions& options)
        : machine(sim::MachineOptions{.random_seed = options.random_seed}) {}

    sim::Machine machine;
    std::uint64_t resident_token = 0;
    /// Caching programs that ran since resident_token came: co-compiled models share a token.
    std::vector<const void*> resident;
};

Simulator::Simulator(const SimulatorOptions& options) : chip_(std::make_unique<Chip>(options)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

struct SimulatedPackage::Impl {
    std::optional<Prepared> caching;
    Prepared computing;
    std::vector<OutputUnpacker> unpackers;

    Status run_one(Simulator::Chip& chip, const Prepared& prepared,
                   std::span<const std::vector<std::byte>> packed, StreamHost& host) const;
    Status load(Simulator::Chip& chip) const;
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
    if (const auto* caching = package.find(ExecutableType::parameter_caching))
        impl->caching = REEF_TRY(in_place(prepare_executable(*caching), to_string(caching->type)));
    for (const auto& layer : computing->outputs)
        impl->unpackers.push_back(REEF_TRY(in_place(OutputUnpacker::prepare(layer), layer.name)));
    return SimulatedPackage(std::move(impl));
}

const Executable& SimulatedPackage::executable() const {
    return impl_->computing.executable;
}

Status SimulatedPackage::Impl::run_one(Simulator::Chip& chip, const Prepared& prepared,
                                       std::span<const std::vector<std::byte>> packed,
                                       StreamHost& host) const {
    const auto parameters =
        REEF_TRY(sent_stream(prepared.executable, prepared.plan, Tag::parameters, packed));
    const auto activations =
        REEF_TRY(sent_stream(prepared.executable, prepared.plan, Tag::input_activations, packed));
    host = StreamHost(parameters, activations);
    REEF_CHECK(
        in_place(chip.machine.run(prepared.program, host), to_string(prepared.executable.type)));
    if (host.left() != 0)
        return fail(Cause::bad_input,
                    fmt::format("the program leaves {} bytes that the host sent", host.left()),
                    to_string(prepared.executable.type));
    return {};
}

// A new token's parameters take the place of the old ones; equal tokens stay side by side.
Status SimulatedPackage::Impl::load(Simulator::Chip& chip) const {
    if (!caching) return {};
    const std::uint64_t token = caching->executable.parameter_caching_token;
    if (token == 0 || token != chip.resident_token) chip.resident.clear();
    if (std::ranges::find(chip.resident, static_cast<const void*>(this)) != chip.resident.end())
        return {};
    StreamHost host({}, {});
    REEF_CHECK(run_one(chip, *caching, {}, host));
    chip.resident_token = token;
    chip.resident.push_back(this);
    return {};
}

Status SimulatedPackage::run(Simulator& simulator, std::span<const Bytes> inputs,
                             std::span<const MutableBytes> outputs) {
    const Prepared& computing = impl_->computing;
    if (outputs.size() != impl_->unpackers.size())
        return fail(Cause::bad_argument, fmt::format("{} outputs, the package has {}",
                                                     outputs.size(), impl_->unpackers.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].size() != impl_->unpackers[i].tensor_bytes())
            return fail(Cause::bad_argument,
                        fmt::format("output {} has {} bytes, its layer {}", i, outputs[i].size(),
                                    impl_->unpackers[i].tensor_bytes()));
    const auto packed = REEF_TRY(pack_inputs(computing.executable, computing.plan, inputs));
    auto& chip = simulator.chip();
    REEF_CHECK(impl_->load(chip));
    StreamHost host({}, {});
    REEF_CHECK(impl_->run_one(chip, computing, packed, host));
    const auto layers = REEF_TRY(cut_output_stream(computing.plan, host.received()));
    for (std::size_t i = 0; i < outputs.size(); ++i) impl_->unpackers[i].run(layers[i], outputs[i]);
    return {};
}

}  // namespace reef::edgetpu
