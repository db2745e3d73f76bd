// What things are taken to cost where there is a choice.
#pragma once

#include <cstdint>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {

// Words of instructions, as emitted.
inline constexpr std::uint64_t words_of_tensor = 17, words_of_copy = 7, words_of_receive = 4,
                               words_of_send = 4, words_of_stop = 3;

[[nodiscard]] inline std::uint64_t ring_cycles(std::uint64_t rows) {
    return static_cast<std::uint64_t>(static_cast<double>(rows * spec::row_bytes) /
                                      spec::assumed::ring_bytes_per_cycle);
}
[[nodiscard]] inline std::uint64_t step_cycles(std::uint64_t steps) {
    return static_cast<std::uint64_t>(static_cast<double>(steps) / spec::assumed::steps_per_cycle);
}
/// Instructions come over USB with every inference.
[[nodiscard]] inline std::uint64_t instruction_cycles(std::uint64_t words) {
    constexpr double bytes_of_word = 16;
    return static_cast<std::uint64_t>(static_cast<double>(words) * bytes_of_word *
                                      spec::assumed::clock_hz /
                                      spec::assumed::to_chip_bytes_per_second);
}
/// A tensor of one pixel, from the tile that has it to others.
[[nodiscard]] inline std::uint64_t cycles_to_send_pixel(const Tensor& t) {
    return ring_cycles((t.words() + 63) / 64) +
           instruction_cycles(2 * words_of_copy + words_of_receive + words_of_send + words_of_stop);
}

}  // namespace reef::edgetpu::lowering
