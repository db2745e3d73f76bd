// Places tensors in one arena so that tensors alive at the same time do not overlap.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reef/base/result.h"

namespace reef::graph {

/// A block of memory and the operators during which it must keep its contents.
struct Lifetime {
    std::size_t bytes = 0;
    std::size_t first = 0;  ///< operator index
    std::size_t last = 0;   ///< inclusive, >= first
};

struct MemoryPlan {
    std::vector<std::size_t> offsets;  ///< one per lifetime, multiples of arena_alignment
    std::size_t arena_bytes = 0;
    std::size_t lower_bound_bytes = 0;  ///< the most bytes alive at once: no plan can be smaller
};

inline constexpr std::size_t arena_alignment = 64;
[[nodiscard]] constexpr std::size_t align_up(std::size_t bytes) {
    return (bytes + arena_alignment - 1) / arena_alignment * arena_alignment;
}
/// Larger plans are refused: no network of this kind needs them, but a hostile file may ask.
inline constexpr std::size_t arena_limit = std::size_t{4} << 30;

/// Errors: unsupported when the arena would be above arena_limit.
[[nodiscard]] Result<MemoryPlan> plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace reef::graph
