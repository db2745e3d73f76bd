// ARG_MAX's and ARG_MIN's input as outer x length x inner, with the reduced axis in the middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

struct ArgMaxShape {
    std::size_t outer = 1;
    std::size_t length = 1;
    std::size_t inner = 1;
};

/// Along the last axis values and indices are packed into 16 bits.
[[nodiscard]] inline bool fast_arg_max_applies(const ArgMaxShape& shape) {
    return shape.inner > 1 || shape.length <= 256;
}

/// uint8 or int8 values, int32 or int64 indices. Precondition:
/// fast_arg_max_applies(shape).
[[nodiscard]] std::unique_ptr<Kernel> fast_arg_max(const ArgMaxShape& shape, ElementType type,
                                                   ElementType index_type);

enum class Extreme : std::uint8_t { largest, smallest };

/// Of float32: either `count` rows of `length` elements behind each other (a stride of 1), or
/// `count` columns of rows that begin `stride` elements behind each other.
struct FloatPiece {
    const float* in = nullptr;
    std::size_t length = 0;
    std::size_t stride = 1;
    std::size_t count = 0;
};

/// float32 values, int32 or int64 indices; ARG_MIN, too.
[[nodiscard]] std::unique_ptr<Kernel> fast_float_arg_max(const ArgMaxShape& shape, Extreme wanted,
                                                         ElementType index_type);

}  // namespace reef::cpu
