#include "fast_tensor_engine.h"

#include <algorithm>
#include <cstring>

#include "requantise.h"

namespace reef::edgetpu::sim {
namespace {

/// Positions whose activations are gathered before they are multiplied.
constexpr std::size_t most_rows = 64;
/// Gathered values stay in the first-level caches.
constexpr std::size_t most_row_values = 16 * 1024;
/// Behind rows and values: kernels write whole vectors.
constexpr std::size_t slack = 64;
/// Start value and bias leave the rest of 32 bits to the sum.
constexpr std::int32_t most_bias = 1 << 28;

StepForm form_of(const TensorOp& op) {
    if (op.par_16bit) return StepForm::two_halfwords;
    return op.single ? StepForm::single_byte : StepForm::four_bytes;
}

std::size_t row_values(const TensorPlan& plan) {
    return std::size_t{2} * plan.step_pairs * plan.reduction;
}

std::size_t rows_at_once(const TensorPlan& plan) {
    return std::clamp<std::size_t>(most_row_values / row_values(plan), 1, most_rows);
}

}  // namespace

void TensorScratch::reserve(const TensorPlan& plan) {
    runs.reserve(plan.reduction);
    parameters.reserve(plan.reduction);
    const std::size_t weight_size = row_values(plan) * plan.lanes;
    if (weight_size > weight_values_kept) {
        weights = hwy::AllocateAligned<std::int16_t>(weight_size);
        weight_values_kept = weight_size;
    }
    const std::size_t row_size = row_values(plan) * rows_at_once(plan) + slack;
    if (row_size > row_values_kept) {
        rows = hwy::AllocateAligned<std::int16_t>(row_size);
        row_values_kept = row_size;
    }
    if (sums != nullptr) return;
    sums = hwy::AllocateAligned<std::int32_t>(most_rows * lane_count);
    values = hwy::AllocateAligned<std::uint8_t>(2 * most_rows * lane_count + slack);
}

FastTensorEngine::FastTensorEngine(const TensorOp& op, const TensorShape& shape,
                                   const TensorPlan& plan, TensorState& state)
    : op_(&op),
      shape_(&shape),
      plan_(&plan),
      state_(&state),
      kernels_(tensor_kernels()),
      form_(form_of(op)),
      used_lanes_(op.acc_internal ? std::max(op.lanes, op.last_lanes) : lane_count),
      in_(plan.in_of_block),
      par_(plan.parameter_of_block),
      acc_(plan.acc_of_block),
      position_(plan.position_of_block),
      out_(op.out) {}

std::optional<Unmet> FastTensorEngine::unmet_wait(const TileCounters& counters) const {
    for (std::size_t w = 0; w < op_->waits.count; ++w) {
        const Wait& wait = op_->waits.all[w];
        if (wait.destination || step_ % plan_->wait_steps[w] != 0) continue;
        const auto needed = static_cast<std::uint16_t>(
            wait.start + wait.step * static_cast<std::int64_t>(step_ / plan_->wait_steps[w]));
        if (!counters.reached(wait.counter, needed)) return Unmet{wait.counter, needed};
    }
    return std::nullopt;
}

FastTensorEngine::Block FastTensorEngine::block() const {
    Block block{
        .position = static_cast<std::uint32_t>(position_.address()), .first = true, .last = true};
    for (unsigned d = 0; d < plan_->position_of_block.dimensions; ++d) {
        if ((plan_->reduction_mask >> d & 1U) == 0) continue;
        block.first &= position_.index(d) == 0;
        block.last &= position_.index(d) + 1 == plan_->position_of_block.count[d];
    }
    block.group = block.position / shape_->positions_of_group;
    return block;
}

// Where a position's steps find their operands, relative to its first step.
void FastTensorEngine::lay_out_steps() {
    auto& runs = scratch_->runs;
    auto& parameters = scratch_->parameters;
    runs.clear();
    parameters.clear();
    const auto bytes = static_cast<std::int32_t>(plan_->step_bytes);
    for (NestCursor in(plan_->in_of_step); !in.done(); in.advance()) {
        const std::int32_t at = in.address();
        if (!runs.empty() &&
            at == runs.back().offset + bytes * static_cast<std::int32_t>(runs.back().steps))
            ++runs.back().steps;
        else
            runs.push_back({at, 1});
    }
    for (NestCursor par(plan_->parameter_of_step); !par.done(); par.advance())
        parameters.push_back(static_cast<std::uint32_t>(par.address()));
}

// Zero points of the group's parameters; false when they are not those of 8-bit values.
bool FastTensorEngine::read_zeros(const TileMemory& memory, std::uint64_t group) {
    if (!op_->par_zero_rows) {
        zeros_.fill(op_->par_zero);
        return true;
    }
    const std::uint64_t row = zero_row_of(*op_, group);
    if (row >= wide_rows) return false;
    std::memcpy(zeros_.data(), memory.wide[row].data(), row_bytes);
    std::uint32_t all = 0;
    for (unsigned lane = 0; lane < used_lanes_; ++lane)
        all |= static_cast<std::uint32_t>(zeros_[lane]);
    return all <= 255;
}

// Bias and scale of the group; false when a bias is so large that a sum could leave 32 bits.
bool FastTensorEngine::set_stage(const TileMemory& memory, std::uint64_t group) {
    OutputRows& stage = scratch_->stage;
    const auto buffer = static_cast<unsigned>(group & 1U);
    for (unsigned lane = 0; lane < plan_->lanes; ++lane) {
        const std::int32_t bias = op_->bias ? memory.lane_bias(buffer, lane) : 0;
        if (lane < used_lanes_ && (bias > most_bias || bias < -most_bias)) return false;
        stage.bias[lane] = static_cast<std::int32_t>(static_cast<std::uint32_t>(bias) +
                                                     static_cast<std::uint32_t>(op_->start_value));
        stage.scale[lane] = op_->lane_scale ? memory.lane_scale(buffer, lane) : op_->scale;
    }
    for (unsigned lane = plan_->lanes; lane < lane_count; ++lane) {
        stage.bias[lane] = stage.bias[lane - plan_->lanes];
        stage.scale[lane] = stage.scale[lane - plan_->lanes];
    }
    stage.clamp_min = op_->clamp_min;
    stage.clamp_max = op_->clamp_max;
    stage.zero = op_->out_zero;
    stage.halfwords = op_->out_16bit;
    return true;
}

// Whether 16-bit parameters without their zero point are 16 bits wide. With the middle for a zero
// point they always are.
bool FastTensorEngine::halfwords_fit(const TileMemory& memory) const {
    constexpr std::int32_t middle = 32768;
    if (form_ != StepForm::two_halfwords || op_->par_zero == middle) return true;
    const auto base = static_cast<std::uint32_t>(par_.address());
    const std::int32_t least = op_->par_zero - middle, most = op_->par_zero + middle - 1;
    return std::ranges::all_of(scratch_->parameters, [&](std::uint32_t offset) {
        const auto& row = memory.wide[(base + offset) >> 2U];
        for (unsigned at = 0; at < 4 * used_lanes_; at += 2) {
            const std::int32_t value = TileMemory::read<std::uint16_t>(&row[at]);
            if (value < least || value > most) return false;
        }
        return true;
    });
}

bool FastTensorEngine::prepare(const Work& work, const Block& block) {
    const TileMemory& memory = work.tile.memory;
    if (op_->table && !work.tile.table) return false;
    if (!halfwords_fit(memory)) return false;
    if (prepared_group_ == block.group) return true;
    if (!read_zeros(memory, block.group) || !set_stage(memory, block.group)) return false;
    prepared_group_ = block.group;
    return true;
}

void FastTensorEngine::pack(const TileMemory& memory) {
    const auto base = static_cast<std::uint32_t>(par_.address());
    std::int16_t* to = scratch_->weights.get();
    const std::size_t step = std::size_t{2} * plan_->step_pairs * plan_->lanes;
    for (const std::uint32_t offset : scratch_->parameters) {
        const std::uint32_t at = base + offset;
        kernels_->pack(memory.wide[at >> 2U].data(), at & 3U, form_, plan_->lanes, zeros_.data(),
                       to);
        to += step;
        if (op_->par.rotates()) group_rows_.set(at >> 2U);
    }
}

void FastTensorEngine::run_block(Work& work, const Block& block) {
    auto& memory = work.tile.memory;
    pack(memory);
    const std::size_t row_size = row_values(*plan_);
    const std::size_t at_once = rows_at_once(*plan_);
    const std::size_t pairs = std::size_t{plan_->step_pairs} * plan_->reduction;
    NestCursor in(plan_->in_of_position, in_.address());
    NestCursor acc;
    if (!op_->acc_internal)
        acc = NestCursor(plan_->acc_of_position, acc_.address() + plan_->acc_of_last_step);
    for (std::size_t done = 0; done < plan_->positions;) {
        const std::size_t count = std::min<std::size_t>(at_once, plan_->positions - done);
        for (std::size_t p = 0; p < count; ++p, in.advance())
            kernels_->gather(&memory.narrow[static_cast<std::uint32_t>(in.address())],
                             scratch_->runs, form_, op_->in_zero,
                             scratch_->rows.get() + p * row_size);
        std::int32_t* sums = scratch_->sums.get();
        if (plan_->in_parts)
            sums =
                &state_
                     ->parts[shape_->live_positions == 1 ? 0
                                                         : (block.position + done) * plan_->lanes];
        kernels_->multiply(scratch_->rows.get(), row_size, count, scratch_->weights.get(), pairs,
                           plan_->lanes, !block.first, sums);
        if (block.last) finish(work, block, sums, acc, count);
        done += count;
    }
}

// Sums that stay in wide memory.
void FastTensorEngine::keep_sums(TileMemory& memory, const std::int32_t* sums, NestCursor& acc,
                                 std::size_t count) const {
    for (std::size_t p = 0; p < count; ++p, acc.advance()) {
        const auto row = static_cast<std::uint32_t>(acc.address()) >> 2U;
        for (unsigned lane = 0; lane < lane_count; ++lane) {
            const std::int32_t sum = sums[p * lane_count + lane] + op_->start_value;
            std::memcpy(&memory.wide[row][4 * lane], &sum, sizeof sum);
        }
        memory.row_length[row] = row_bytes;
    }
}

void FastTensorEngine::finish(Work& work, const Block& block, const std::int32_t* sums,
                              NestCursor& acc, std::size_t count) {
    if (!op_->acc_internal) keep_sums(work.tile.memory, sums, acc, count);
    const unsigned width = op_->out_16bit ? 2 : 1;
    std::uint8_t* values = scratch_->values.get();
    const OutputRows& stage = scratch_->stage;
    if (op_->table) {
        for (std::size_t i = 0; i < count * plan_->lanes; ++i) {
            const std::size_t lane = i % plan_->lanes;
            const float y =
                scaled(std::int64_t{sums[i]} + stage.bias[lane], stage.scale[lane], *op_);
            const std::uint16_t value = stored(apply_table(*work.tile.table, y, *op_), *op_);
            std::memcpy(values + i * width, &value, width);
        }
    } else {
        kernels_->requantise(sums, count, plan_->lanes, stage, values);
    }
    const unsigned lanes = block.group + 1 == shape_->groups ? op_->last_lanes : op_->lanes;
    const unsigned words = (lanes * width + 3) / 4;
    const std::size_t stride = std::size_t{plan_->lanes} * width;
    for (std::size_t p = 0; work.tap != nullptr && p < count; ++p)
        work.tap->results(work.tile.number, work.tile.memory,
                          static_cast<unsigned>(block.group & 1U),
                          {values + p * stride, std::size_t{4} * words});
    store(work, count, words, stride);
}

void FastTensorEngine::store(Work& work, std::size_t count, unsigned words, std::size_t stride) {
    auto& narrow = work.tile.memory.narrow;
    std::uint8_t* values = scratch_->values.get();
    const std::int32_t step = op_->out.step[0];
    std::uint64_t events = 0;
    for (std::size_t p = 0; p < count; ++p, values += stride) {
        for (unsigned word = 0; word < words;) {
            const unsigned run = std::min(words - word, out_.left_in_pass());
            const std::int32_t at = out_.address();
            if (step == 4) {
                std::memcpy(&narrow[static_cast<std::uint32_t>(at)], values + 4 * word, 4UL * run);
            } else {
                for (unsigned i = 0; i < run; ++i)
                    std::memcpy(&narrow[static_cast<std::uint32_t>(
                                    at + static_cast<std::int32_t>(i) * step)],
                                values + 4UL * (word + i), 4);
            }
            events += op_->avdata.events(run, out_.advance(run), op_->out.dimensions);
            word += run;
        }
    }
    work.tile.counters.count(spec::value::tile_counter::AVDATA_, events);
}

// What TensorEngine counts step by step, at the end of a block.
void FastTensorEngine::count_events(Work& work) {
    namespace counter = spec::value::tile_counter;
    const std::uint32_t end = step_ + plan_->steps();
    const auto passes = [&](std::uint32_t steps) { return end / steps - step_ / steps; };
    if (op_->par.rotates() && end % plan_->release_steps == 0) {
        for (std::size_t row = group_rows_._Find_first(); row < wide_rows;
             row = group_rows_._Find_next(row))
            work.tile.memory.full[row] = RowOwner::none;
        group_rows_.reset();
    }
    if (op_->parameters.enabled)
        work.tile.counters.count(counter::PARAMETERS_, passes(plan_->parameters_steps));
    if (op_->partial_sums.enabled)
        work.tile.counters.count(counter::PARTIAL_SUMS_, passes(plan_->partial_sums_steps));
    in_.advance();
    par_.advance();
    acc_.advance();
    position_.advance();
    step_ = end;
}

Outcome FastTensorEngine::hand_over(Work& work, bool moved) {
    plain_.emplace(*op_, *shape_, state_->sums);
    plain_->go_to(step_, out_, group_rows_);
    if (plan_->in_parts) {
        const std::size_t live = shape_->live_positions;
        for (std::size_t p = 0; p < live; ++p) {
            state_->sums[p].fill(0);
            std::copy_n(&state_->parts[p * plan_->lanes], plan_->lanes, state_->sums[p].begin());
        }
    }
    const Outcome outcome = plain_->advance(work);
    return outcome == Outcome::waiting && moved ? Outcome::moved : outcome;
}

Outcome FastTensorEngine::advance(Work& work) {
    if (plain_) return plain_->advance(work);
    scratch_ = work.scratch;
    bool moved = false;
    while (step_ < shape_->steps) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = unmet_wait(work.tile.counters))
            return moved ? Outcome::moved : work.wait(*unready);
        if (!moved) {
            lay_out_steps();
            prepared_group_.reset();
        }
        const Block now = block();
        if (!prepare(work, now)) return hand_over(work, moved);
        run_block(work, now);
        count_events(work);
        moved = true;
        work.budget -= std::min<std::uint64_t>(work.budget, plan_->steps());
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
