#include "edgetpu/isa/loop_nest.h"

#include <algorithm>

namespace reef::edgetpu {

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
    const unsigned c = crop_dimension;
    const std::uint64_t passes = passes_from(c + 1);
    const std::uint64_t below = visits_below(c);
    if (crop_level == 0) return saturating_product(passes, saturating_product(count[c], below));
    const std::uint64_t cropped = crop_level < dimensions ? passes / count[crop_level] : passes;
    const std::uint64_t full = saturating_product(passes - cropped, count[c]);
    const std::uint64_t rest = saturating_product(cropped, crop_count);
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(full, rest, &sum)) return std::numeric_limits<std::uint64_t>::max();
    return saturating_product(sum, below);
}

double LoopNest::longest_walk() const {
    double n = std::max(count[crop_dimension], crop_level == 0 ? 1 : crop_count);
    for (unsigned d = 0; d < dimensions; ++d) n *= d == crop_dimension ? 1 : count[d];
    return n;
}

std::uint64_t LoopNest::visits_of_pass(unsigned level, std::uint64_t pass) const {
    const std::uint64_t whole = visits_below(level);
    if (crop_level == 0) return whole;
    const std::uint64_t rows = whole / count[crop_dimension];  // of the cropped dimension
    std::uint64_t cropped = rows;
    if (crop_level < dimensions && level > crop_level) {
        cropped /= count[crop_level];
    } else if (crop_level < dimensions) {
        for (unsigned d = level; d < crop_level; ++d) pass /= count[d];
        if (pass % count[crop_level] + 1 != count[crop_level]) cropped = 0;
    }
    return (rows - cropped) * count[crop_dimension] + cropped * crop_count;
}

LoopNest read_loop_nest(Bytes instruction, const InstructionInfo& info, const FieldGroup& group) {
    const auto fields = info.fields.subspan(group.first, group.count);
    std::size_t at = 0;
    const auto next = [&] {
        return static_cast<std::int32_t>(field_value(instruction, fields[at++]));
    };
    LoopNest nest{.base = next(), .dimensions = group.dimensions};
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        nest.step[d] = next();
        nest.count[d] = static_cast<std::uint32_t>(next()) + 1;
    }
    nest.mask = static_cast<std::uint32_t>(next());
    nest.rotate_level = static_cast<unsigned>(next());
    nest.rotate_size = next();
    nest.crop_count = static_cast<std::uint32_t>(next()) + 1;
    nest.crop_level = static_cast<unsigned>(next());
    nest.crop_left_out = static_cast<std::uint32_t>(next());
    return nest;
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

}  // namespace reef::edgetpu
