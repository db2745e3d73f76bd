#include "reduction_engine.h"

#include <algorithm>
#include <limits>
#include <span>

#include "requantise.h"
#include "tensor_operands.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::size_t quarters_of_rows = 4 * wide_rows;
/// Of what has no memory.
constexpr std::size_t no_end = std::numeric_limits<std::int32_t>::max();

}  // namespace

ReductionEngine::ReductionEngine(const TensorOp& op, const TensorShape& shape)
    : op_(&op),
      shape_(&shape),
      lanes_(whole_words(op.lanes)),
      zero_(op.kind == TensorKind::max ? op.par_zero + op.in_zero : op.par_zero),
      loops_(op.loops),
      par_(op.par),
      results_(op) {}

// A lane's parameters are four bytes of a row: all of a step's, or those that a quarter begins.
void ReductionEngine::add(const TileMemory& memory, std::uint32_t parameter) {
    const std::uint8_t* row = memory.wide[row_of(parameter)].data();
    const unsigned elements = op_->elements();
    const unsigned width = op_->par_16bit ? 2 : 1;
    const unsigned first = elements * width < narrow_word_bytes ? parameter & 3U : 0;
    for (unsigned lane = 0; lane < lanes_; ++lane, row += narrow_word_bytes)
        for (unsigned j = 0; j < elements; ++j) {
            const std::uint8_t* at = row + first + width * j;
            const std::int32_t value =
                (op_->par_16bit ? TileMemory::read<std::uint16_t>(at) : *at) - zero_;
            sums_[lane] =
                op_->kind == TensorKind::max ? std::max(sums_[lane], value) : sums_[lane] + value;
        }
}

bool ReductionEngine::finish(Work& work) {
    if (!has_its_table(work, *op_)) return false;
    const std::int32_t start = op_->kind == TensorKind::sum ? op_->start_value : 0;
    const std::size_t width = op_->out_16bit ? 2 : 1;
    std::array<std::uint8_t, 2 * lane_count> bytes{};
    for (unsigned lane = 0; lane < lanes_; ++lane) {
        float y = scaled(std::int64_t{sums_[lane]} + start, op_->scale, *op_);
        if (op_->table) y = apply_table(*work.tile.table, y, *op_);
        const std::uint16_t value = stored(y, *op_);
        std::memcpy(&bytes[lane * width], &value, width);
    }
    const std::size_t words = (op_->lanes * width + narrow_word_bytes - 1) / narrow_word_bytes;
    return results_.store(work, std::span(bytes).first(words * narrow_word_bytes));
}

void ReductionEngine::count_events(Work& work, std::uint32_t steps) {
    namespace counter = spec::value::tile_counter;
    const bool rotates = op_->par.rotates();
    auto parameter = static_cast<std::uint32_t>(par_.address());
    for (std::uint32_t i = 0; rotates && i < steps; ++i) {
        group_rows_[rows_of_group_++] = row_of(parameter);
        parameter += static_cast<std::uint32_t>(op_->par.step[0]);
    }
    const unsigned completed = par_.advance(steps);
    if (rotates && completed >= op_->par.rotate_level) {
        for (const std::uint32_t row : std::span(group_rows_).first(rows_of_group_))
            work.empty(row);
        rows_of_group_ = 0;
    }
    work.count(counter::PARAMETERS_, op_->parameters.events(steps, completed, op_->par.dimensions));
    work.count(counter::PARTIAL_SUMS_,
               op_->partial_sums.events(steps, loops_.advance(steps), op_->loops.dimensions));
}

// Steps of one result, from the next one on, that nothing comes between, one at least. The last of
// a result goes alone: at a result the run may stop, and the steps before it have counted then.
std::uint32_t ReductionEngine::steps_at_once(const Work& work) const {
    const std::uint64_t before_last = shape_->steps / shape_->positions - step_of_result_ - 1;
    // Where the next parameter may be one at which the run stops.
    if (op_->par_16bit && (op_->par.step[0] & 1) != 0) return 1;
    const std::uint32_t in_a_row = std::min(work.run(op_->waits, false, loops_, no_end),
                                            work.run(op_->waits, true, par_, quarters_of_rows));
    return static_cast<std::uint32_t>(
        std::max<std::uint64_t>(std::min<std::uint64_t>(before_last, in_a_row), 1));
}

bool ReductionEngine::take_steps(Work& work, std::uint32_t steps) {
    if (step_of_result_ == 0) sums_.fill(op_->kind == TensorKind::max ? op_->start_value : 0);
    TensorStep at{.position = 0, .in = 0, .parameter = static_cast<std::uint32_t>(par_.address())};
    for (std::uint32_t i = 0; i < steps; ++i) {
        if (!reaches(work, *op_, at)) return false;
        add(work.tile.memory, at.parameter);
        at.parameter += static_cast<std::uint32_t>(op_->par.step[0]);
    }
    step_of_result_ += steps;
    if (step_of_result_ == shape_->steps / shape_->positions) {
        if (!finish(work)) return false;
        step_of_result_ = 0;
    }
    count_events(work, steps);
    step_ += steps;
    return true;
}

Outcome ReductionEngine::advance(Work& work) {
    bool moved = false;
    while (step_ < shape_->steps) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, false, loops_))
            return work.wait(*unready, moved);
        const std::uint32_t steps = steps_at_once(work);
        if (!take_steps(work, steps)) return Outcome::waiting;
        moved = true;
        work.spend(steps);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
