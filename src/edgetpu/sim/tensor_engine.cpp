#include "tensor_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "requantise.h"

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

/// Results are stored in words of up to four lanes.
unsigned whole_words(unsigned lanes) {
    constexpr unsigned lanes_of_word = 4;
    return (lanes + lanes_of_word - 1) / lanes_of_word * lanes_of_word;
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

TensorEngine::TensorEngine(const TensorOp& op, const TensorShape& shape, Sums& sums,
                           TagReads& reads, DataTag own)
    : TensorEngine(op, shape, sums) {
    reads_ = &reads;
    own_ = own;
}

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

namespace {

struct Operands {
    const TensorOp& op;
    const TileMemory& memory;
    std::uint32_t in = 0;         ///< byte
    std::uint32_t parameter = 0;  ///< quarter row
    std::array<std::int32_t, lane_count> zero{};

    [[nodiscard]] std::int64_t activation(unsigned j) const {
        const auto* at = &memory.narrow[in];
        const std::int32_t x = op.in_16bit ? TileMemory::read<std::uint16_t>(at + 2 * j) : at[j];
        return x - op.in_zero;
    }
    /// A row holds four bytes a lane: the step's elements, or the one that the quarter selects.
    [[nodiscard]] std::int64_t weight(unsigned lane, unsigned j) const {
        const unsigned width = op.par_16bit ? 2 : 1;
        const unsigned quarter = op.elements() * width < 4 ? parameter & 3U : 0;
        const auto* at = &memory.wide[parameter >> 2U][4 * lane + quarter + width * j];
        const std::int32_t w = op.par_16bit ? TileMemory::read<std::uint16_t>(at) : *at;
        return w - zero[lane];
    }
};

// Weight of one of the four taps: the tap's distance, in quarter pixels, times 32.
std::int64_t tap_weight(unsigned tap, unsigned phase) {
    const std::int64_t far = 32 * std::int64_t{phase & 3U};
    return tap == 1 ? far : 128 - far;
}

// Of the source, where a result's first tap is; the nearest pixel is found by rounding.
unsigned quarter_pixels(const Resize::Axis& axis, const NestCursor& loops) {
    constexpr unsigned half_a_pixel = 2;
    return axis.phase + axis.step * loops.index(axis.level) + (axis.nearest ? half_a_pixel : 0);
}

constexpr unsigned row_of(std::uint32_t quarter) {
    return quarter >> 2U;
}

void tell_narrow(const Witness& witness, std::uint32_t first, unsigned bytes) {
    for (std::uint32_t word = first / narrow_word_bytes;
         word <= (first + bytes - 1) / narrow_word_bytes; ++word)
        witness.reads(Watched::narrow, word);
}

// Inputs without a weight are read and change nothing: rows of three channels, read by four.
void tell_inputs(const Witness& witness, const Operands& at, unsigned lanes) {
    const unsigned width = at.op.in_16bit ? 2 : 1;
    for (unsigned j = 0; j < at.op.elements(); ++j) {
        const std::uint32_t first = at.in + width * j;
        const auto word = first / narrow_word_bytes;
        const auto weighs = [&] {
            for (unsigned lane = 0; lane < lanes; ++lane)
                if (at.weight(lane, j) != 0) return true;
            return false;
        };
        const bool odd =
            witness.monitor->suspicious(witness.actor, Watched::narrow, witness.tile, word);
        if (!odd || weighs()) tell_narrow(witness, first, width);
    }
}

// Lanes whose results are stored: their scale and bias, of 4 bytes each.
void tell_scaling(const Witness& witness, unsigned buffer, unsigned lanes) {
    constexpr unsigned lanes_of_word = scaling_word_bytes / 4;
    for (unsigned lane = 0; lane < lanes; lane += lanes_of_word)
        witness.reads(Watched::scaling, (buffer * lane_count + lane) / lanes_of_word);
}

}  // namespace

bool TensorEngine::accumulate(Work& work, std::array<std::int64_t, lane_count>& sums,
                              std::uint64_t position, std::uint64_t group) {
    const auto& memory = work.tile.memory;
    Operands at{.op = *op_,
                .memory = memory,
                .in = static_cast<std::uint32_t>(in_.address()),
                .parameter = static_cast<std::uint32_t>(par_.address())};
    const bool reads_input = op_->kind == TensorKind::mac || op_->kind == TensorKind::resize;
    std::int64_t blend = 1;
    if (op_->kind == TensorKind::resize) {
        const unsigned x = quarter_pixels(op_->resize.x, loops_);
        const unsigned y = quarter_pixels(op_->resize.y, loops_);
        at.in += (x >> 2U) * static_cast<std::uint32_t>(op_->resize.pixel_stride) +
                 (y >> 2U) * static_cast<std::uint32_t>(op_->resize.row_stride);
        if (!op_->resize.x.nearest)
            blend = tap_weight(loops_.index(0), x) * tap_weight(loops_.index(1), y);
    }
    if (reads_input && at.in >= narrow_bytes) {
        work.stop(fmt::format("reads narrow byte {:#x}", at.in));
        return false;
    }
    const auto tell = [&] {
        work.tap->step(work.tile.number, memory, position, at.in, at.parameter);
        return true;
    };
    if (op_->kind == TensorKind::resize) {
        if (watched_) return tell();
        if (reads_ != nullptr) {
            if (blend != 0) note_reads(work, at.in, at.parameter);
            return true;
        }
        if (work.witness && blend != 0) tell_narrow(work.witness, at.in, 4);
        for (unsigned lane = 0; lane < 4; ++lane) sums[lane] += blend * memory.narrow[at.in + lane];
        return true;
    }
    if (row_of(at.parameter) >= wide_rows) {
        work.stop(fmt::format("reads wide row {:#x}", row_of(at.parameter)));
        return false;
    }
    if (op_->par_16bit && op_->elements() == 1 && (at.parameter & 1U) != 0) {
        work.stop(fmt::format("reads a 16-bit parameter at quarter row {:#x}, which is odd",
                              at.parameter));
        return false;
    }
    if (watched_) return tell();
    if (reads_ != nullptr) {
        note_reads(work, at.in, at.parameter);
        return true;
    }
    at.zero.fill(op_->kind == TensorKind::max ? op_->par_zero + op_->in_zero : op_->par_zero);
    if (op_->par_zero_rows) {
        const auto rows = static_cast<std::uint64_t>(
            op_->zero_row_step == 0
                ? 1
                : (op_->zero_row_last - op_->zero_row_first) / op_->zero_row_step + 1);
        const auto row = static_cast<std::uint64_t>(op_->zero_row_first) +
                         group % std::max<std::uint64_t>(rows, 1) *
                             static_cast<std::uint64_t>(op_->zero_row_step);
        if (row >= wide_rows) {
            work.stop(fmt::format("reads wide row {:#x}", row));
            return false;
        }
        std::memcpy(at.zero.data(), memory.wide[row].data(), row_bytes);
        work.witness.reads(Watched::wide, static_cast<std::uint32_t>(row));
    }
    if (work.witness) {
        work.witness.reads(Watched::wide, row_of(at.parameter));
        if (reads_input)
            tell_inputs(work.witness, at,
                        group + 1 == shape_.groups ? op_->last_lanes : op_->lanes);
    }
    const unsigned elements = op_->elements();
    for (unsigned lane = 0; lane < used_lanes_; ++lane) {
        for (unsigned j = 0; j < elements; ++j) {
            const std::int64_t w = at.weight(lane, j);
            if (op_->kind == TensorKind::mac)
                sums[lane] += at.activation(j) * w;
            else if (op_->kind == TensorKind::sum)
                sums[lane] += w;
            else
                sums[lane] = std::max(sums[lane], w);
        }
    }
    return true;
}

// The words of one step; rows of parameters by their first word, unless the program made them.
void TensorEngine::note_reads(const Work& work, std::uint32_t in, std::uint32_t parameter) {
    const auto& memory = work.tile.memory;
    const auto word_at = [&](std::uint32_t byte) {
        return TileMemory::read<DataTag>(
            &memory.narrow[byte / narrow_word_bytes * narrow_word_bytes]);
    };
    const bool has_parameters = op_->kind != TensorKind::resize;
    const std::uint32_t row = row_of(parameter);
    const auto first = static_cast<std::uint32_t>(op_->par.base) >> 2U;
    if (op_->kind == TensorKind::mac || op_->kind == TensorKind::resize) {
        const unsigned width = op_->in_16bit ? 2 : 1;
        const unsigned bytes =
            op_->kind == TensorKind::resize ? narrow_word_bytes : op_->elements() * width;
        TagSet& set = reads_->in[has_parameters ? (row - first) % reads_->in.size() : 0];
        set.insert(word_at(in));
        set.insert(word_at(in + bytes - 1));
    }
    if (!has_parameters) return;
    const auto tag = [&](unsigned word) {
        return TileMemory::read<DataTag>(&memory.wide[row][word * narrow_word_bytes]);
    };
    reads_->parameters.insert(tag(0));
    if (is_parameter_tag(tag(0))) return;
    // A lane has a word of its own; in transposed rows, a part of each word of a block.
    const unsigned block = words_per_block(memory.row_format[row]);
    const bool whole = op_->elements() * (op_->par_16bit ? 2 : 1) == narrow_word_bytes;
    for (unsigned lane = 0; lane < std::max(op_->lanes, op_->last_lanes); ++lane) {
        const unsigned base = lane / block * block;
        if (!whole) {
            reads_->parameters.insert(tag(base + (parameter & 3U) * block / 4));
            continue;
        }
        for (unsigned word = base; word < base + block; ++word) {
            reads_->parameters.insert(tag(word));
        }
    }
}

bool TensorEngine::store_tag(Work& work, unsigned lanes, unsigned buffer) {
    const auto& scaling = work.tile.memory.scaling;
    const auto lane_0 = [&](unsigned of) {
        return TileMemory::read<DataTag>(scaling.data() + std::size_t{of} * row_bytes);
    };
    if (op_->lane_scale) reads_->scaling.insert(lane_0(buffer));
    if (op_->bias) reads_->scaling.insert(lane_0(2 + buffer));
    std::array<std::int32_t, lane_count> tags;
    tags.fill(static_cast<std::int32_t>(own_));
    if (!op_->acc_internal && !store_sums(work, tags)) return false;
    const unsigned words = (lanes * (op_->out_16bit ? 2 : 1) + 3) / 4;
    return store(work, {reinterpret_cast<const std::uint8_t*>(tags.data()),
                        std::size_t{words} * narrow_word_bytes});
}

bool TensorEngine::store(Work& work, std::span<const std::uint8_t> words) {
    for (std::size_t word = 0; word < words.size(); word += narrow_word_bytes) {
        if (out_.done()) {
            work.stop("has more results than output addresses");
            return false;
        }
        const auto at = static_cast<std::uint32_t>(out_.address());
        if (at >= narrow_bytes) {
            work.stop(fmt::format("writes narrow byte {:#x}", at));
            return false;
        }
        for (auto touched = at / narrow_word_bytes; touched <= (at + 3) / narrow_word_bytes;
             ++touched) {
            work.witness.writes(Watched::narrow, touched);
            if (reads_ != nullptr)  // tags are whole words
                std::memcpy(&work.tile.memory.narrow[touched * narrow_word_bytes], &words[word],
                            narrow_word_bytes);
        }
        if (reads_ == nullptr)
            std::memcpy(&work.tile.memory.narrow[at], &words[word], narrow_word_bytes);
        if (op_->avdata.fires(out_.advance(), op_->out.dimensions))
            work.count(spec::value::tile_counter::AVDATA_);
    }
    return true;
}

bool TensorEngine::store_sums(Work& work, const std::array<std::int32_t, lane_count>& sums) {
    auto& memory = work.tile.memory;
    const auto row = static_cast<std::uint32_t>(acc_.address()) >> 2U;
    if (row >= wide_rows) {
        work.stop(fmt::format("writes wide row {:#x}", row));
        return false;
    }
    std::memcpy(memory.wide[row].data(), sums.data(), row_bytes);
    memory.row_length[row] = row_bytes;
    work.witness.writes(Watched::wide, row);
    return true;
}

bool TensorEngine::finish(Work& work, std::array<std::int64_t, lane_count>& sums,
                          std::uint64_t group) {
    const auto& memory = work.tile.memory;
    const auto buffer = static_cast<unsigned>(group & 1U);
    const unsigned lanes = group + 1 == shape_.groups ? op_->last_lanes : op_->lanes;
    if (reads_ != nullptr) return store_tag(work, lanes, buffer);
    if (op_->kind == TensorKind::mac || op_->kind == TensorKind::sum)
        for (auto& sum : sums) sum += op_->start_value;
    if (!op_->acc_internal) {
        std::array<std::int32_t, lane_count> narrowed;
        for (unsigned lane = 0; lane < lane_count; ++lane)
            narrowed[lane] = static_cast<std::int32_t>(sums[lane]);
        if (!store_sums(work, narrowed)) return false;
    }
    if (work.witness) {
        if (op_->lane_scale) tell_scaling(work.witness, buffer, lanes);
        if (op_->bias) tell_scaling(work.witness, 2 + buffer, lanes);
    }
    if (op_->table && !work.tile.table) {
        work.stop("applies a table that nothing loaded",
                  "no known program does this: a load_table stands before it on the same tile");
        return false;
    }
    const unsigned width = op_->out_16bit ? 2 : 1;
    std::array<std::uint8_t, 2 * lane_count> bytes{};
    for (unsigned lane = 0; lane < used_lanes_ && !watched_; ++lane) {
        const std::int64_t sum = sums[lane] + (op_->bias ? memory.lane_bias(buffer, lane) : 0);
        float y = scaled(sum, op_->lane_scale ? memory.lane_scale(buffer, lane) : op_->scale, *op_);
        if (op_->table)
            y = op_->table_normalised ? apply_table_normalised(*work.tile.table, y)
                                      : apply_table(*work.tile.table, y);
        const std::uint16_t value = stored(y, *op_);
        std::memcpy(&bytes[std::size_t{lane} * width], &value, width);
    }
    const std::size_t words = (std::size_t{lanes} * width + 3) / narrow_word_bytes;
    const auto stored_words = std::span(bytes).first(words * narrow_word_bytes);
    if (work.tap != nullptr) work.tap->results(work.tile.number, stored_words);
    return store(work, stored_words);
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
        auto unready = work.unready(op_->waits.view(), false, loops_);
        if (unready) return moved ? Outcome::moved : work.wait(*unready);
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
