// A hostile program on the simulated Edge TPU: refused, stopped or run within its steps; the same
// bytes twice, and no failure without a reason.
#include <algorithm>

#include "check.h"
#include "edgetpu/sim/machine.h"

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

    std::uint64_t sum = 0;

  private:
    Bytes bytes_;
    std::size_t at_ = 0;
    std::uint64_t asked_ = 0;
};

struct Run {
    bool ended = false;
    std::string error;
    std::uint64_t sum = 0;
    friend bool operator==(const Run&, const Run&) = default;
};

Run run(const Program& program, Bytes bytes, MachineOptions options) {
    Machine machine(options);
    Host host(bytes);
    const auto status = machine.run(program, host);
    if (!status) check(!status.error().what.empty(), "an error says what is wrong");
    if (auto* monitor = machine.monitor())
        for (const auto& finding : monitor->findings())
            check(!message(finding).empty(), "a finding has a message");
    return {status.has_value(), status ? "" : status.error().message(), host.sum};
}

}  // namespace
}  // namespace reef::fuzz

// The first byte says how the machine runs; the rest is a stream.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    using namespace reef::fuzz;
    constexpr std::size_t most_bytes = 1 << 14;
    if (size < 17 || size > most_bytes) return 0;
    const Bytes bytes = std::as_bytes(std::span(data, size));
    const std::array streams = {bytes.subspan(1, (size - 1) / 16 * 16)};
    const auto program = translate_program(streams);
    if (!program) {
        check(!program.error().what.empty(), "an error says what is wrong");
        return 0;
    }
    MachineOptions options;
    options.most_steps = 20'000;
    options.engine = (data[0] & 1U) != 0 ? edgetpu::EngineKind::fast : edgetpu::EngineKind::plain;
    options.strict = (data[0] & 2U) != 0;
    options.full_bits = (data[0] & 4U) == 0;
    if ((data[0] & 8U) != 0) options.random_seed = data[0];
    const Run first = run(*program, streams[0], options);
    check(first == run(*program, streams[0], options), "the same run twice gives the same");
    return 0;
}
