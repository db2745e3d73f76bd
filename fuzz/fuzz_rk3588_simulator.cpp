// The simulated RK3588 core: any chain of words over a small memory ends, refused with a reason or
// with results inside its buffers, and the same chain gives the same bytes again.
#include <algorithm>

#include "check.h"
#include "rk3588/sim/machine.h"

namespace {

constexpr std::uint32_t words_at = 0x1000;
constexpr std::uint32_t data_at = 0x4000;
constexpr std::size_t data_size = 0x1000;

struct Outcome {
    std::vector<std::byte> data;
    std::string refusal;
};

Outcome outcome_of(reef::Bytes stream) {
    using namespace reef::rk3588;
    std::vector<std::byte> words(stream.begin(), stream.end());
    Outcome out{std::vector<std::byte>(data_size), {}};
    for (std::size_t i = 0; i < data_size; ++i) out.data[i] = static_cast<std::byte>(i * 11);
    sim::Memory memory;
    reef::fuzz::check(
        memory.add(words_at, words).has_value() && memory.add(data_at, out.data).has_value(),
        "two buffers lie beside each other");
    sim::Machine machine(memory);
    // Few tasks: what a chain in a circle does is the same in every round.
    const auto report = machine.run(words_at, words.size() / 8, 4);
    if (!report) out.refusal = report.error().message();
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0 || size > 0x2000) return 0;
    const auto stream = std::as_bytes(std::span(data, size));
    const Outcome first = outcome_of(stream);
    const Outcome second = outcome_of(stream);
    reef::fuzz::check(first.data == second.data && first.refusal == second.refusal,
                      "the same program gives the same results");
    return 0;
}
