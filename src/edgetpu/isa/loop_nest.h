// The address differences of a loop nest and the strides that people mean.
//
// Dimension d's difference contains the way back through the dimensions below it; its stride is the
// distance of two passes: stride_d = difference_d + sum over k < d of stride_k * (count_k - 1).
// Modulo 2^64 each is a function of the other, so that any bits survive the way there and back.
#pragma once

#include <array>
#include <cstdint>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

inline constexpr unsigned most_dimensions = 8;

struct LoopNest {
    std::uint64_t base = 0;
    unsigned dimensions = 0;
    std::array<std::uint64_t, most_dimensions> strides{};  ///< two's complement
    std::array<std::uint64_t, most_dimensions> limits{};   ///< counts less one
};

/// `group` must be of kind loop_nest.
[[nodiscard]] inline LoopNest read_loop_nest(Bytes instruction, const InstructionInfo& info,
                                             const FieldGroup& group) {
    const auto fields = info.fields.subspan(group.first, group.count);
    LoopNest nest{.base = field_bits(instruction, fields[0]), .dimensions = group.dimensions};
    std::uint64_t way = 0;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        const auto difference = field_value(instruction, fields[1 + 2 * d]);
        nest.limits[d] = field_bits(instruction, fields[2 + 2 * d]);
        nest.strides[d] = static_cast<std::uint64_t>(difference) + way;
        way += nest.strides[d] * nest.limits[d];
    }
    return nest;
}

/// The differences that belong to the strides, in two's complement.
[[nodiscard]] inline std::array<std::uint64_t, most_dimensions> differences(const LoopNest& nest) {
    std::array<std::uint64_t, most_dimensions> out{};
    std::uint64_t way = 0;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        out[d] = nest.strides[d] - way;
        way += nest.strides[d] * nest.limits[d];
    }
    return out;
}

}  // namespace reef::edgetpu
