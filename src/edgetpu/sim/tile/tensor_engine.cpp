#include "tensor_engine.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::edgetpu::sim {
namespace {

// Whether the reduction loops are the innermost ones: then a position is finished before the next
// begins.
bool reduces_innermost(const TensorOp& op) {
    bool outer = false;
    for (unsigned d = 0; d < op.loops.dimensions; ++d) {
        if (op.loops.count[d] == 1) continue;
        const bool reduction = (op.reduction_mask >> d & 1U) != 0;
        if (reduction && outer) return false;
        outer |= !reduction;
    }
    return true;
}

}  // namespace

Result<TensorShape> shape_of(const TensorOp& op) {
    TensorShape shape;
    shape.steps = op.acc.visits();
    if (op.reduction_steps != 0) {
        if (shape.steps % op.reduction_steps != 0)
            return fail(Cause::unsupported, fmt::format("not modelled: {} steps in sums of {}",
                                                        shape.steps, op.reduction_steps));
        shape.positions = shape.steps / op.reduction_steps;
        shape.live_positions = 1;
    } else {
        shape.positions = 1;
        for (unsigned d = 0; d < op.loops.dimensions; ++d)
            if ((op.reduction_mask >> d & 1U) == 0) shape.positions *= op.loops.count[d];
        shape.live_positions = reduces_innermost(op) ? 1 : shape.positions;
        const bool crops = op.loops.crop_level != 0 && op.loops.crop_count != op.loops.count[0];
        if (crops && (op.reduction_mask & 1U) == 0)
            return fail(Cause::unsupported,
                        "not modelled: a crop of a loop that is no part of the sums");
        if (op.loops.visits() != shape.steps)
            return fail(Cause::unsupported,
                        fmt::format("not modelled: {} loop passes for {} accumulator visits",
                                    op.loops.visits(), shape.steps));
    }
    constexpr std::uint64_t most_live_positions = 8192;
    if (shape.live_positions > most_live_positions)
        return fail(Cause::unsupported,
                    fmt::format("not modelled: {} sums at once", shape.live_positions), {},
                    "known programs have no more than there are rows for them");
    shape.groups = op.group_level == 0 ? 1 : op.loops.passes_from(op.group_level);
    // Loops whose passes are no groups of results leave a single group.
    if (shape.groups == 0 || shape.positions % shape.groups != 0) shape.groups = 1;
    shape.positions_of_group = shape.positions / shape.groups;
    return shape;
}

TensorEngine::TensorEngine(const TensorOp& op, const TensorShape& shape, Sums& sums, bool watched)
    : op_(&op),
      shape_(shape),
      used_lanes_(op.acc_internal ? whole_words(std::max(op.lanes, op.last_lanes)) : lane_count),
      sums_(&sums),
      loops_(op.loops),
      in_(op.in),
      out_(op.out),
      par_(op.par),
      acc_(op.acc),
      watched_(watched) {}

std::uint64_t TensorEngine::position() const {
    if (op_->reduction_steps != 0) return step_ / op_->reduction_steps;
    std::uint64_t position = 0;
    std::uint64_t weight = 1;
    for (unsigned d = 0; d < op_->loops.dimensions; ++d) {
        if ((op_->reduction_mask >> d & 1U) != 0) continue;
        position += loops_.index(d) * weight;
        weight *= op_->loops.count[d];
    }
    return position;
}

bool TensorEngine::first_of_position() const {
    if (op_->reduction_steps != 0) return step_ % op_->reduction_steps == 0;
    for (unsigned d = 0; d < op_->loops.dimensions; ++d)
        if ((op_->reduction_mask >> d & 1U) != 0 && loops_.index(d) != 0) return false;
    return true;
}

bool TensorEngine::last_of_position() const {
    if (op_->reduction_steps != 0) return (step_ + 1) % op_->reduction_steps == 0;
    for (unsigned d = 0; d < op_->loops.dimensions; ++d)
        if ((op_->reduction_mask >> d & 1U) != 0 && !loops_.at_end(d)) return false;
    return true;
}

void TensorEngine::release_group(Work& work) {
    for (std::size_t row = group_rows_._Find_first(); row < wide_rows;
         row = group_rows_._Find_next(row))
        work.empty(row);
    group_rows_.reset();
}

// Nests that are shorter than the instruction start again.
void TensorEngine::count_events(Work& work) {
    namespace counter = spec::value::tile_counter;
    const std::uint32_t row = static_cast<std::uint32_t>(par_.address()) >> 2U;
    if (op_->par.rotates() && row < wide_rows) group_rows_.set(row);
    const unsigned completed = par_.advance();
    if (op_->par.rotates() && completed >= op_->par.rotate_level) release_group(work);
    if (op_->parameters.fires(completed, op_->par.dimensions)) work.count(counter::PARAMETERS_);
    if (par_.done()) par_ = NestCursor(op_->par);
    in_.advance();
    if (in_.done()) in_ = NestCursor(op_->in);
    acc_.advance();
    if (op_->partial_sums.fires(loops_.advance(), op_->loops.dimensions))
        work.count(counter::PARTIAL_SUMS_);
}

void TensorEngine::go_to(std::uint64_t step, const NestCursor& out,
                         const std::bitset<wide_rows>& group_rows) {
    for (; step_ < step; ++step_) {
        results_ += last_of_position() ? 1 : 0;
        for (auto* cursor : {&par_, &in_}) {
            cursor->advance();
            if (cursor->done()) *cursor = NestCursor(cursor->nest());
        }
        acc_.advance();
        loops_.advance();
    }
    out_ = out;
    group_rows_ = group_rows;
}

bool TensorEngine::step(Work& work) {
    const std::uint64_t at = position();
    const std::uint64_t group = at / shape_.positions_of_group;
    auto& sums = (*sums_)[shape_.live_positions == 1 ? 0 : at];
    if (first_of_position()) sums.fill(op_->kind == TensorKind::max ? op_->start_value : 0);
    if (!accumulate(work, sums, at, group)) return false;
    if (last_of_position()) {
        if (!finish(work, sums, group)) return false;
        ++results_;
    }
    count_events(work);
    ++step_;
    return true;
}

Outcome TensorEngine::advance(Work& work) {
    bool moved = false;
    while (!acc_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        auto unready = work.unready(op_->waits, false, loops_);
        if (unready) return work.wait(*unready, moved);
        if (!step(work)) return Outcome::waiting;
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    if (results_ != shape_.positions)
        return work.stop(
            fmt::format("ends with {} of {} results per lane", results_, shape_.positions));
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
