#include "edgetpu/program/loop_nest.h"

#include <algorithm>

namespace reef::edgetpu::program {

bool LoopNest::moves() const {
    return mask != 0 || std::ranges::any_of(count, [](std::uint32_t n) { return n > 1; });
}

std::uint64_t LoopNest::visits_below(unsigned level) const {
    std::uint64_t n = 1;
    for (unsigned d = 0; d < std::min(level, dimensions); ++d) n = saturating_product(n, count[d]);
    return n;
}

std::uint64_t LoopNest::passes_from(unsigned level) const {
    if (level == 0) return visits();
    std::uint64_t n = 1;
    for (unsigned d = level; d < dimensions; ++d) n = saturating_product(n, count[d]);
    return n;
}

std::uint64_t LoopNest::visits() const {
    const std::uint64_t passes = passes_from(1);
    if (crop_level == 0) return saturating_product(passes, count[0]);
    const std::uint64_t cropped = crop_level < dimensions ? passes / count[crop_level] : passes;
    const std::uint64_t full = saturating_product(passes - cropped, count[0]);
    const std::uint64_t rest = saturating_product(cropped, crop_count);
    std::uint64_t sum = 0;
    return __builtin_add_overflow(full, rest, &sum) ? std::numeric_limits<std::uint64_t>::max()
                                                    : sum;
}

double LoopNest::longest_walk() const {
    double n = std::max(count[0], crop_level == 0 ? 1 : crop_count);
    for (unsigned d = 1; d < dimensions; ++d) n *= count[d];
    return n;
}

std::uint64_t LoopNest::visits_of_pass(std::uint64_t pass) const {
    if (crop_level == 0) return count[0];
    if (crop_level >= dimensions) return crop_count;
    for (unsigned d = 1; d < crop_level; ++d) pass /= count[d];
    return pass % count[crop_level] + 1 == count[crop_level] ? crop_count : count[0];
}

Strides strides_of(const LoopNest& nest) {
    Strides out{};
    std::uint64_t way = 0;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        out[d] = static_cast<std::uint64_t>(std::int64_t{nest.step[d]}) + way;
        way += out[d] * (nest.count[d] - std::uint64_t{1});
    }
    return out;
}

Strides steps_of(const Strides& strides, const Strides& limits, unsigned dimensions) {
    Strides out{};
    std::uint64_t way = 0;
    for (unsigned d = 0; d < dimensions; ++d) {
        out[d] = strides[d] - way;
        way += strides[d] * limits[d];
    }
    return out;
}

}  // namespace reef::edgetpu::program
