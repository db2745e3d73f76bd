// A hostile program on the simulated Edge TPU: refused, stopped or run within its steps; the same
// bytes twice and on both engines, and no failure without a reason.
#include <algorithm>
#include <memory>

#include "check.h"
#include "edgetpu/sim/machine/machine.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu::sim;

/// Gives the input's own bytes over and over, and takes everything.
class Host final : public HostPort {
  public:
    explicit Host(Bytes bytes) : bytes_(bytes) {}

    bool take(bool, std::span<std::uint8_t> unit) override {
        if (asked_ == 0) return false;
        --asked_;
        for (auto& byte : unit) byte = std::to_integer<std::uint8_t>(bytes_[at_++ % bytes_.size()]);
        return true;
    }
    bool has_room(std::size_t) const override { return true; }
    Status give(std::span<const std::uint8_t> unit) override {
        for (const auto byte : unit) sum = sum * 31 + byte;
        return {};
    }
    Status fire(const DmaDescriptor& descriptor) override {
        asked_ = std::min<std::uint64_t>(asked_ + descriptor.bytes, 1U << 16U);
        return {};
    }
    Status end_stream() override { return {}; }

    std::uint64_t sum = 0;

  private:
    Bytes bytes_;
    std::size_t at_ = 0;
    std::uint64_t asked_ = 0;
};

/// A run and the machine that it leaves.
struct Run {
    explicit Run(const MachineOptions& options) : machine(options) {}

    Machine machine;
    std::string error;  ///< empty: it ended
    std::uint64_t sum = 0;
};

std::unique_ptr<Run> run(const Program& program, Bytes bytes, const MachineOptions& options) {
    auto run = std::make_unique<Run>(options);
    Host host(bytes);
    const auto status = run->machine.run(program, host);
    if (!status) {
        check(!status.error().what.empty(), "an error says what is wrong");
        run->error = status.error().message();
    }
    run->sum = host.sum;
    if (auto* monitor = run->machine.monitor())
        for (const auto& finding : monitor->findings())
            check(!message(finding).empty(), "a finding has a message");
    return run;
}

/// The same error, bytes to the host and memories.
bool same(Run& a, Run& b) {
    if (a.error != b.error || a.sum != b.sum) return false;
    for (unsigned t = 0; t < tile_count; ++t) {
        const auto& one = a.machine.tile(t).memory;
        const auto& other = b.machine.tile(t).memory;
        if (one.narrow != other.narrow || one.wide != other.wide || one.full != other.full ||
            one.row_length != other.row_length || one.scaling != other.scaling)
            return false;
    }
    return true;
}

/// Engines notice at different places that the steps are used up.
bool out_of_steps(const Run& run) {
    return run.error.find("did not end within") != std::string::npos;
}

/// What is done with a program: bits of the first byte.
enum Mode : std::uint8_t {
    fast = 1,
    strict = 2,
    no_full_bits = 4,
    random_order = 8,
    twice = 16,         ///< once more, for the same
    both_engines = 32,  ///< once more, in fixed order, with the other engine
    side_by_side = 64,  ///< once more, with tiles on two threads
};

MachineOptions options_of(std::uint8_t mode) {
    MachineOptions options;
    options.most_steps = 20'000;
    options.engine = (mode & fast) != 0 ? edgetpu::EngineKind::fast : edgetpu::EngineKind::plain;
    options.strict = (mode & strict) != 0;
    options.full_bits = (mode & no_full_bits) == 0;
    if ((mode & random_order) != 0) options.random_seed = mode;
    return options;
}

}  // namespace
}  // namespace reef::fuzz

// The first byte says how the machine runs; the rest is a stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    using namespace reef::fuzz;
    constexpr std::size_t most_bytes = 1 << 15;
    if (size < 17 || size > most_bytes) return 0;
    const Bytes bytes = std::as_bytes(std::span(data, size));
    const std::array streams = {bytes.subspan(1, (size - 1) / 16 * 16)};
    const auto program = translate_program(streams);
    if (!program) {
        check(!program.error().what.empty(), "an error says what is wrong");
        return 0;
    }
    const std::uint8_t mode = data[0];
    const auto first = run(*program, streams[0], options_of(mode));
    if ((mode & twice) != 0)
        check(same(*first, *run(*program, streams[0], options_of(mode))),
              "the same run twice gives the same");
    if ((mode & side_by_side) != 0) {
        MachineOptions threads = options_of(mode);
        threads.threads = 2;
        check(same(*first, *run(*program, streams[0], threads)),
              "any number of threads gives the same");
    }
    if ((mode & (both_engines | strict | random_order)) == both_engines && !out_of_steps(*first)) {
        const auto second = run(*program, streams[0], options_of(mode ^ fast));
        check(out_of_steps(*second) || same(*first, *second), "both engines give the same");
    }
    return 0;
}
