#include "nest.h"

namespace reef::edgetpu::sim {

// Of the dimensions below `completed`, a new pass begins.
void NestCursor::enter_pass(unsigned completed) {
    if (completed > 1) second_count_ = nest_->count[1];
    first_count_ = nest_->count[0];
    if (nest_->crop_level == 0 || completed <= nest_->crop_dimension) return;
    const unsigned level = nest_->crop_level;
    if (level >= nest_->dimensions || index_[level] + 1 == nest_->count[level])
        (nest_->crop_dimension == 0 ? first_count_ : second_count_) = nest_->crop_count;
}

// Of a nest whose passes are all alike.
unsigned NestCursor::carry_whole() {
    const Nest& nest = *nest_;
    index_[0] = 0;
    unsigned d = 1;
    for (; d < nest.dimensions; ++d) {
        ++passes_[d];
        if (++index_[d] < nest.count[d]) break;
        index_[d] = 0;
    }
    fresh_ = d;
    if (d >= nest.dimensions) {
        ++passes_[d];
        done_ = true;
        return d;
    }
    address_ += static_cast<std::uint32_t>(nest.step[d]);
    return d;
}

// At the end of a pass of dimension 0.
unsigned NestCursor::carry() {
    const Nest& nest = *nest_;
    if (nest.crop_level == 0) return carry_whole();
    // A cropped pass leaves the address where a full one would.
    if (first_count_ != nest.count[0])
        address_ += (nest.count[0] - first_count_) * static_cast<std::uint32_t>(nest.step[0]);
    index_[0] = 0;
    unsigned d = 1;
    for (; d < nest.dimensions; ++d) {
        ++passes_[d];
        if (++index_[d] < (d == 1 ? second_count_ : nest.count[d])) break;
        index_[d] = 0;
    }
    if (second_count_ != nest.count[1] && d > 1)
        address_ += (nest.count[1] - second_count_) *
                    (static_cast<std::uint32_t>(nest.step[1]) +
                     (nest.count[0] - 1) * static_cast<std::uint32_t>(nest.step[0]));
    fresh_ = d;
    if (d >= nest.dimensions) {
        ++passes_[nest.dimensions];
        done_ = true;
        return nest.dimensions;
    }
    address_ += static_cast<std::uint32_t>(nest.step[d]);
    enter_pass(d);
    return d;
}

}  // namespace reef::edgetpu::sim
