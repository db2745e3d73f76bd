#include "fast_tensor_engine.h"

#include <algorithm>
#include <cstring>

#include "requantise.h"

namespace reef::edgetpu::sim {
namespace {

/// Gathered values stay in the first-level caches.
constexpr std::size_t most_row_values = 16 * 1024;
/// Behind rows and values: kernels write whole vectors.
constexpr std::size_t slack = 64;
static_assert(slack >= 2 * gathered_bytes);

StepForm form_of(const TensorOp& op) {
    if (op.par_16bit) return StepForm::two_halfwords;
    return op.single ? StepForm::single_byte : StepForm::four_bytes;
}

/// Rotating rows that a block has used are given back behind a later one.
bool releases_later(const TensorOp& op, const TensorPlan& plan) {
    return op.par.rotates() && plan.release_steps != plan.steps();
}

bool of_quads(const TensorOp& op, const TensorPlan& plan) {
    constexpr unsigned most_few_lanes = 8;
    const StepForm form = form_of(op);
    return form == StepForm::four_bytes ||
           (form == StepForm::single_byte && plan.lanes <= most_few_lanes);
}

std::size_t row_values(const TensorPlan& plan) {
    return std::size_t{2} * plan.step_pairs * plan.reduction;
}

std::size_t rows_at_once(const TensorPlan& plan) {
    return std::clamp<std::size_t>(most_row_values / row_values(plan), 1,
                                   TensorScratch::most_positions);
}

// Addresses of the next positions, relative to nothing.
void list_positions(NestCursor& at, std::span<std::uint32_t> positions) {
    for (std::size_t done = 0; done < positions.size();) {
        const std::size_t run = std::min<std::size_t>(at.left_in_pass(), positions.size() - done);
        const auto first = static_cast<std::uint32_t>(at.address());
        const auto step = static_cast<std::uint32_t>(at.nest().step[0]);
        for (std::size_t i = 0; i < run; ++i)
            positions[done + i] = first + static_cast<std::uint32_t>(i) * step;
        at.advance(static_cast<std::uint32_t>(run));
        done += run;
    }
}

}  // namespace

void ScratchSizes::include(const TensorPlan& plan) {
    weights = std::max(weights, row_values(plan) * plan.lanes);
    rows = std::max(rows, row_values(plan) * rows_at_once(plan) + slack);
    reduction = std::max<std::size_t>(reduction, plan.reduction);
}

void TensorScratch::reserve(const ScratchSizes& sizes) {
    if (sums == nullptr) {
        sums = hwy::AllocateAligned<std::int32_t>(most_positions * lane_count);
        values = hwy::AllocateAligned<std::uint8_t>(2 * most_positions * lane_count + slack);
    }
    if (sizes.weights > kept.weights) {
        weights = hwy::AllocateAligned<std::int16_t>(sizes.weights);
        kept.weights = sizes.weights;
    }
    if (sizes.rows > kept.rows) {
        rows = hwy::AllocateAligned<std::int16_t>(sizes.rows);
        kept.rows = sizes.rows;
    }
    if (sizes.reduction <= kept.reduction) return;
    constexpr std::size_t most_few_lanes = 8;
    kept.reduction = sizes.reduction;
    quad_rows.resize(kept.reduction);
    quad_quarters.resize(kept.reduction);
    quad_bytes = hwy::AllocateAligned<std::uint8_t>(8 * most_few_lanes * kept.reduction);
}

FastTensorEngine::FastTensorEngine(const TensorOp& op, const TensorShape& shape,
                                   const TensorPlan& plan, TensorState& state)
    : op_(&op),
      shape_(&shape),
      plan_(&plan),
      state_(&state),
      kernels_(tensor_kernels()),
      quads_(of_quads(op, plan) ? quad_kernels() : nullptr),
      form_(form_of(op)),
      used_lanes_(op.acc_internal ? whole_words(std::max(op.lanes, op.last_lanes)) : lane_count),
      in_(plan.in_of_block),
      par_(plan.parameter_of_block),
      acc_(plan.acc_of_block),
      position_(plan.position_of_block),
      out_(plan.out_of_word) {}

std::uint16_t FastTensorEngine::needed_by(std::size_t wait) const {
    const Wait& w = op_->waits.all[wait];
    return static_cast<std::uint16_t>(
        w.start + w.step * static_cast<std::int64_t>(step_ / plan_->wait_steps[wait]));
}

std::size_t FastTensorEngine::unmet_wait(const TileCounters& counters) const {
    std::size_t w = 0;
    for (; w < op_->waits.count; ++w) {
        const Wait& wait = op_->waits.all[w];
        if (wait.destination || step_ % plan_->wait_steps[w] != 0) continue;
        if (!counters.reached(wait.counter, needed_by(w))) break;
    }
    return w;
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

// Zero points of the group's parameters; false when they are not those of 8-bit values.
bool FastTensorEngine::read_zeros(const TileMemory& memory, std::uint64_t group) {
    auto& zeros = scratch_->zeros;
    if (!op_->par_zero_rows) {
        std::fill_n(zeros.begin(), plan_->lanes, op_->par_zero);
        return true;
    }
    const std::uint64_t row = zero_row_of(*op_, group);
    if (row >= wide_rows) return false;
    std::memcpy(zeros.data(), memory.wide[row].data(), sizeof(std::int32_t) * plan_->lanes);
    std::uint32_t all = 0;
    for (unsigned lane = 0; lane < used_lanes_; ++lane)
        all |= static_cast<std::uint32_t>(zeros[lane]);
    return all <= 255;
}

// Bias and scale of the group; false when a bias is so large that a sum could leave 32 bits.
bool FastTensorEngine::set_stage(const TileMemory& memory, std::uint64_t group) {
    OutputRows& stage = scratch_->stage;
    const auto buffer = static_cast<unsigned>(group & 1U);
    const unsigned lanes = plan_->lanes;
    if (op_->bias) {
        std::memcpy(stage.bias, memory.biases(buffer), sizeof(std::int32_t) * lanes);
        bool fits = true;
        for (unsigned lane = 0; lane < used_lanes_; ++lane)
            fits &= stage.bias[lane] <= plan_->most_bias && stage.bias[lane] >= -plan_->most_bias;
        if (!fits) return false;
        for (unsigned lane = 0; lane < lanes; ++lane)
            stage.bias[lane] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(stage.bias[lane]) +
                                          static_cast<std::uint32_t>(op_->start_value));
    } else {
        std::fill_n(stage.bias, lanes, op_->start_value);
    }
    if (op_->lane_scale)
        std::memcpy(stage.scale, memory.scales(buffer), sizeof(float) * lanes);
    else
        std::fill_n(stage.scale, lanes, op_->scale);
    constexpr unsigned least_entries = 16;
    for (unsigned lane = lanes; lane < least_entries; ++lane) {
        stage.bias[lane] = stage.bias[lane - lanes];
        stage.scale[lane] = stage.scale[lane - lanes];
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
    return std::ranges::all_of(plan_->parameters, [&](std::uint32_t offset) {
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
    kernels_->pack(memory.wide.data()->data(), base, plan_->parameters, form_, plan_->lanes,
                   scratch_->zeros.data(), scratch_->weights.get());
    if (releases_later(*op_, *plan_))
        for (const std::uint32_t offset : plan_->parameters) group_rows_.set((base + offset) >> 2U);
}

// As pack(), where parameters are multiplied where they lie.
void FastTensorEngine::point_at_rows(const TileMemory& memory) {
    const auto base = static_cast<std::uint32_t>(par_.address());
    const std::span rows = std::span(scratch_->quad_rows).first(plan_->reduction);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = memory.wide[(base + plan_->parameters[i]) >> 2U].data();
    if (releases_later(*op_, *plan_))
        for (const std::uint32_t offset : plan_->parameters) group_rows_.set((base + offset) >> 2U);
    QuadParameters& quads = scratch_->quads;
    quads.quarters = {};
    if (op_->single) {
        const std::span quarters = std::span(scratch_->quad_quarters).first(plan_->reduction);
        for (std::size_t i = 0; i < quarters.size(); ++i)
            quarters[i] = static_cast<std::uint8_t>((base + plan_->parameters[i]) & 3U);
        quads.quarters = quarters;
        quads.runs = plan_->runs;
    }
    quads.rows = rows;
    quads.lanes = plan_->lanes;
    quads.in_zero = op_->in_zero;
    quads.packed = scratch_->quad_bytes.get();
    quads.zero = scratch_->zeros.data();
    quads_->prepare(quads, used_lanes_);
}

// The block's products of the first `count` positions that are listed.
void FastTensorEngine::multiply(const TileMemory& memory, std::size_t count, bool add,
                                std::int32_t* sums) {
    const std::span positions = std::span(scratch_->positions).first(count);
    if (quads_ != nullptr) {
        quads_->multiply(scratch_->quads, plan_->runs_of_quads, memory.narrow.data(), positions,
                         add, sums);
        return;
    }
    const std::size_t row_size = row_values(*plan_);
    kernels_->gather(memory.narrow.data(), positions, plan_->runs, form_, op_->in_zero, row_size,
                     scratch_->rows.get());
    const std::size_t pairs = std::size_t{plan_->step_pairs} * plan_->reduction;
    kernels_->multiply(scratch_->rows.get(), row_size, count, scratch_->weights.get(), pairs,
                       plan_->lanes, add, sums);
}

void FastTensorEngine::run_block(Work& work, const Block& block) {
    auto& memory = work.tile.memory;
    if (quads_ != nullptr)
        point_at_rows(memory);
    else
        pack(memory);
    const std::size_t at_once =
        quads_ != nullptr ? TensorScratch::most_positions : rows_at_once(*plan_);
    NestCursor in(plan_->in_of_position, in_.address());
    NestCursor acc;
    if (!op_->acc_internal)
        acc = NestCursor(plan_->acc_of_position, acc_.address() + plan_->acc_of_last_step);
    for (std::size_t done = 0; done < plan_->positions;) {
        const std::size_t count = std::min<std::size_t>(at_once, plan_->positions - done);
        list_positions(in, std::span(scratch_->positions).first(count));
        std::int32_t* sums = scratch_->sums.get();
        if (plan_->in_parts)
            sums =
                &state_
                     ->parts[shape_->live_positions == 1 ? 0
                                                         : (block.position + done) * plan_->lanes];
        multiply(memory, count, !block.first, sums);
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

void FastTensorEngine::store_words(TileMemory& memory, const std::uint8_t* values,
                                   std::size_t words) {
    const std::ptrdiff_t step = out_.nest().step[0];
    while (words > 0) {
        const auto run =
            static_cast<std::uint32_t>(std::min<std::size_t>(words, out_.left_in_pass()));
        std::uint8_t* to = &memory.narrow[static_cast<std::uint32_t>(out_.address())];
        if (step == narrow_word_bytes)
            std::memcpy(to, values, narrow_word_bytes * run);
        else
            for (std::uint32_t i = 0; i < run; ++i, to += step)
                std::memcpy(to, values + narrow_word_bytes * i, narrow_word_bytes);
        const unsigned completed = out_.advance(run);
        if (plan_->avdata_words == 0)
            crop_events_ += op_->avdata.events(run, completed, op_->out.dimensions);
        values += narrow_word_bytes * run;
        words -= run;
        words_ += run;
    }
}

void FastTensorEngine::store(Work& work, std::size_t count, unsigned words, std::size_t stride) {
    const std::uint8_t* values = scratch_->values.get();
    const std::uint64_t before = words_;
    crop_events_ = 0;
    if (stride == narrow_word_bytes * words)
        store_words(work.tile.memory, values, count * words);
    else
        for (std::size_t p = 0; p < count; ++p, values += stride)
            store_words(work.tile.memory, values, words);
    if (!op_->avdata.enabled) return;
    const std::uint32_t words_of_event = plan_->avdata_words;
    work.tile.counters.count(
        spec::value::tile_counter::AVDATA_,
        words_of_event == 0 ? crop_events_ : words_ / words_of_event - before / words_of_event);
}

// Where the plain engine goes on to store.
NestCursor FastTensorEngine::plain_out() const {
    NestCursor at(op_->out);
    for (std::uint64_t left = words_; left > 0;) {
        const auto run =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(left, at.left_in_pass()));
        at.advance(run);
        left -= run;
    }
    return at;
}

// What TensorEngine counts step by step, at the end of a block.
void FastTensorEngine::count_events(Work& work) {
    namespace counter = spec::value::tile_counter;
    const std::uint32_t end = step_ + plan_->steps();
    const auto passes = [&](std::uint32_t steps) { return end / steps - step_ / steps; };
    if (op_->par.rotates() && !releases_later(*op_, *plan_)) {
        const auto base = static_cast<std::uint32_t>(par_.address());
        for (const std::uint32_t offset : plan_->parameters)
            work.tile.memory.full.empty((base + offset) >> 2U);
    } else if (op_->par.rotates() && end % plan_->release_steps == 0) {
        for (std::size_t row = group_rows_._Find_first(); row < wide_rows;
             row = group_rows_._Find_next(row))
            work.tile.memory.full.empty(row);
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
    plain_->go_to(step_, plain_out(), group_rows_);
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
        if (const std::size_t wait = unmet_wait(work.tile.counters); wait < op_->waits.count)
            return work.wait(Unmet{op_->waits.all[wait].counter, needed_by(wait)}, moved);
        if (!moved) prepared_group_.reset();
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
