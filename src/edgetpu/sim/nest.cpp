#include "nest.h"

#include <algorithm>

namespace reef::edgetpu::sim {

bool Nest::moves() const {
    return mask != 0 || std::ranges::any_of(count, [](std::uint32_t n) { return n > 1; });
}

std::uint64_t Nest::visits_below(unsigned level) const {
    std::uint64_t n = 1;
    for (unsigned d = 0; d < std::min(level, dimensions); ++d) n *= count[d];
    return n;
}

std::uint64_t Nest::passes_from(unsigned level) const {
    std::uint64_t n = 1;
    for (unsigned d = level; d < dimensions; ++d) n *= count[d];
    return n;
}

std::uint64_t Nest::visits() const {
    const std::uint64_t passes = passes_from(1);
    if (crop_level == 0) return passes * count[0];
    // A dimension that does not exist is always at its last index.
    const std::uint64_t cropped = crop_level < dimensions ? passes / count[crop_level] : passes;
    return (passes - cropped) * count[0] + cropped * crop_count;
}

double Nest::longest_walk() const {
    double n = std::max(count[0], crop_level == 0 ? 1 : crop_count);
    for (unsigned d = 1; d < dimensions; ++d) n *= count[d];
    return n;
}

Nest read_nest(const Instruction& instruction, const FieldGroup& group) {
    const auto fields = instruction.info->fields.subspan(group.first, group.count);
    Nest nest;
    std::size_t at = 0;
    const auto next = [&] { return static_cast<std::int32_t>(instruction.value(fields[at++])); };
    nest.base = next();
    nest.dimensions = group.dimensions;
    nest.count.fill(1);
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        nest.step[d] = next();
        nest.count[d] = static_cast<std::uint32_t>(next()) + 1;
    }
    nest.mask = static_cast<std::uint32_t>(next());
    nest.rotate_level = static_cast<unsigned>(next());
    nest.rotate_size = next();
    nest.rotates = nest.rotate_size != 0;
    nest.crop_count = static_cast<std::uint32_t>(next()) + 1;
    nest.crop_level = static_cast<unsigned>(next());
    return nest;
}

void NestCursor::enter_pass() {
    first_count_ = nest_->count[0];
    if (nest_->crop_level == 0) return;
    const unsigned level = nest_->crop_level;
    if (level >= nest_->dimensions || index_[level] + 1 == nest_->count[level])
        first_count_ = nest_->crop_count;
}

unsigned NestCursor::advance() {
    const Nest& nest = *nest_;
    ++passes_[0];
    if (++index_[0] < first_count_) {
        address_ += static_cast<std::uint32_t>(nest.step[0]);
        fresh_ = 0;
        return 0;
    }
    // A cropped pass leaves the address where a full one would.
    if (first_count_ != nest.count[0])
        address_ += (nest.count[0] - first_count_) * static_cast<std::uint32_t>(nest.step[0]);
    index_[0] = 0;
    unsigned d = 1;
    for (; d < nest.dimensions; ++d) {
        ++passes_[d];
        if (++index_[d] < nest.count[d]) break;
        index_[d] = 0;
    }
    fresh_ = d;
    if (d >= nest.dimensions) {
        ++passes_[nest.dimensions];
        done_ = true;
        return nest.dimensions;
    }
    address_ += static_cast<std::uint32_t>(nest.step[d]);
    enter_pass();
    return d;
}

}  // namespace reef::edgetpu::sim
