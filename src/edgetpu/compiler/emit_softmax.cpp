// SOFTMAX of one row, as the vendor's programs compute it: exponentials of the distance from the
// largest in 16 bits, the inverse root of their sum, its square, the products. All on tile 0.
#include <algorithm>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr TileSet first_tile = 1;
constexpr float sixteen_bit_step = 0x1.0001p-16F;  ///< 1/65535
constexpr float product_scale = 0x1.0002aep-23F;
constexpr float largest_reciprocal = 32768;

/// Of wide memory: what changes from step to step, and what is taken word by word.
constexpr std::int32_t step_row = top_row - 16;
constexpr std::int32_t distance_row = top_row - 12;  ///< the identity, and the largest behind it
constexpr std::int32_t fifo_row = top_row - 8;

class SoftmaxWriter {
  public:
    SoftmaxWriter(Emission& e, const Step& step, const SoftmaxStep& kind)
        : e_(e),
          in_(e.tensor(step.in[0])),
          out_(e.tensor(step.out)),
          scale_(kind.scale),
          words_(in_.words()),
          room_(softmax_room(in_)) {
        const auto base = static_cast<std::int32_t>(step.scratch->base);
        fills_rows_ = in_.channels == static_cast<std::int32_t>(4 * room_.words());
        values_ = fills_rows_ ? in_.address(0, 0, 0) : base;
        units_ = base + static_cast<std::int32_t>(room_.row_bytes());
        distances_ = units_ + static_cast<std::int32_t>(room_.row_bytes());
        exponentials_ = distances_ + static_cast<std::int32_t>(room_.row_bytes());
        small_ = exponentials_ + static_cast<std::int32_t>(room_.exponential_bytes());
    }

    void run() {
        take_values();
        find_largest();
        take_distances();
        take_exponentials();
        clear_padding();
        take_reciprocal();
        multiply();
    }

  private:
    void fill(std::int32_t at, std::uint32_t words, std::uint32_t value) const {
        program::Mesh op;
        op.to = program::Direction::north;
        op.src = nest(4, 0, {});
        op.dst = nest(4, at / 4, {{1, words}});
        if (words == 1) op.dst.mask = 0;
        op.in = signal_at(1);
        op.fills = true;
        op.fill_value = value;
        e_.code.tile(first_tile, op);
    }

    /// Words one by one, each through four lanes of a row.
    program::Tensor word_by_word(std::int32_t from, std::int32_t to, std::uint32_t words) const {
        program::Tensor op = word_copy();
        op.loops = loops({words});
        op.in = nest(8, from, {{4, words}});
        op.out = nest(8, to, {{4, words}});
        op.par = nest(8, 4 * identity_row, {{0, words}});
        op.acc = rotating(nest(8, 0, {{0, words}}), 0, 4);
        op.group_level = 1;
        op.avdata = signal_at(1);
        return op;
    }

    /// Its quarters are the columns of the 4x4 identity.
    void take_identity() const {
        program::NarrowToWide op;
        op.src = nest(6, 0, {{1, 4}});
        op.dst = nest(4, distance_row, {{1, 1}});
        op.dst.mask = 0;
        op.written = signal_at(1);
        op.row_level = 1;
        e_.code.tile(first_tile, op);
    }

    /// Whole rows; what is no value is the least. Values that fill their rows are read where they
    /// are.
    void take_values() const {
        const std::int32_t from = in_.address(0, 0, 0);
        const std::uint32_t rest = count(in_.channels) % 4, whole = count(in_.channels) / 4;
        fill(units_, room_.words(), 0x01010100);
        take_identity();
        if (fills_rows_) return;
        if (words_ < room_.words())
            fill(values_ + static_cast<std::int32_t>(4 * words_), room_.words() - words_, 0);
        if (whole > 0) e_.code.tile(first_tile, word_by_word(from, values_, whole));
        if (rest > 0) {
            const auto skipped = static_cast<std::int32_t>(4 * whole);
            program::Tensor op = word_copy();
            op.in_bytewise = op.single = op.single_par = true;
            op.loops = loops({rest});
            op.in = nest(8, from + skipped, {{1, rest}});
            op.out = nest(8, values_ + skipped, {{4, 1}});
            op.par = nest(8, 4 * identity_row, {{1, rest}});
            op.acc = rotating(nest(8, 0, {{0, rest}}), 1, 4);
            op.group_level = 1;
            op.reduction_mask = 1;
            op.avdata = signal_at(1);
            e_.code.tile(first_tile, op);
        }
        e_.code.fence();
    }

    /// The largest byte of each lane of so many rows.
    void largest_of(std::int32_t row, std::uint32_t rows, std::uint32_t lanes_used,
                    std::int32_t to) const {
        program::Tensor op = word_copy();
        op.kind = program::TensorKind::max;
        op.in_bytewise = op.single = op.single_par = true;
        op.lanes = op.last_lanes = std::max(lanes_used, 4U);
        op.loops = loops({4, rows});
        op.in = nest(8, 0, {});
        op.out = nest(8, to, {{4, op.lanes / 4}});
        op.par = nest(8, 4 * row, {{1, 4}, {4, rows}});
        op.acc = rotating(nest(8, 0, {{0, 4}, {0, rows}}), 2, 4);
        op.group_level = 2;
        op.reduction_mask = 3;
        op.avdata = signal_at(1);
        op.parameters = signal_at(2);
        e_.code.tile(first_tile, op);
        e_.code.fence();
    }

    void to_rows(std::int32_t from, std::uint32_t words, std::uint32_t rows, std::int32_t row,
                 std::int32_t stride = 1) const {
        program::NarrowToWide op;
        op.src = rows == 1 ? nest(6, from / 4, {{stride, words}})
                           : nest(6, from / 4,
                                  {{stride, words}, {static_cast<std::int32_t>(words), rows}});
        op.dst = nest(4, row, {{1, rows}});
        if (rows == 1) op.dst.mask = 0;
        op.written = signal_at(1);
        op.row_level = 1;
        e_.code.tile(first_tile, op);
        e_.code.fence();
    }

    /// Of all rows in 64 lanes, of those four words at a time, of the bytes of a word.
    void find_largest() const {
        const auto row = e_.plan.first_free_row();
        to_rows(values_, 64, room_.rows, row);
        largest_of(row, room_.rows, 64, small_);
        to_rows(small_, 4, 4, step_row);
        largest_of(step_row, 4, 4, small_);
        to_rows(small_, 1, 1, step_row);
        largest_of(step_row, 1, 1, small_);
    }

    /// 255 for the largest. Its row is taken off by an input whose first byte is one below the zero
    /// point.
    void take_distances() const {
        to_rows(small_, 4, 1, distance_row + 1, 0);
        program::Tensor op = word_copy();
        op.in_zero = 1;
        op.initial = 1;
        op.out_zero = 255;
        op.clamp_min = -255;
        op.clamp_max = 0;
        op.loops = loops({2, words_});
        op.in = nest(8, values_, {{units_ - values_, 2}, {4, words_}});
        op.out = nest(8, distances_, {{4, words_}});
        op.par = nest(8, 4 * distance_row, {{4, 2}, {0, words_}});
        op.acc = rotating(nest(8, 0, {{0, 2}, {0, words_}}), 1, 4);
        op.group_level = 2;
        op.reduction_mask = 1;
        op.avdata = signal_at(1);
        e_.code.tile(first_tile, op);
        e_.code.fence();
    }

    void take_exponentials() const {
        program::LoadTable load;
        load.table = table_of(spec::exponential_65536);
        e_.code.tile(first_tile, load);
        program::Tensor op = word_by_word(distances_, exponentials_, words_);
        op.in_zero = 255;
        op.scale = scale_;
        op.clamp_max = spec::exponential_65536.most;
        op.clamp_min = spec::exponential_65536.least;
        op.table = op.out_16bit = true;
        op.out = nest(8, exponentials_, {{4, 2 * words_}});
        e_.code.tile(first_tile, op);
        e_.code.fence();
    }

    /// What is no value adds nothing to the sum.
    void clear_padding() const {
        const std::uint32_t rest = count(in_.channels) % 4;
        const std::uint32_t used = 2 * (count(in_.channels) / 4) + (rest + 1) / 2;
        if (rest % 2 == 1) {
            program::Tensor op = word_copy();
            op.in_16bit = op.single = op.single_par = op.out_16bit = true;
            op.lanes = op.last_lanes = 2;
            op.loops = loops({1});
            const std::int32_t at = exponentials_ + static_cast<std::int32_t>(4 * (used - 1));
            op.in = nest(8, at, {});
            op.out = nest(8, at, {});
            op.par = nest(8, 4 * identity_row, {});
            op.acc = rotating(nest(8, 0, {}), 1, 4);
            op.group_level = 1;
            op.avdata = signal_at(1);
            e_.code.tile(first_tile, op);
            e_.code.fence();
        }
        const std::uint32_t all = room_.exponential_bytes() / 4;
        if (used < all) fill(exponentials_ + static_cast<std::int32_t>(4 * used), all - used, 0);
        e_.code.full_stop();
    }

    /// Words to rows of a FIFO of two, of which the tensor instruction reads one after the other.
    void feed(std::int32_t from, std::uint32_t words) const {
        program::NarrowToWide op;
        op.src = nest(6, from / 4, {{1, words}});
        op.dst = rotating(nest(4, fifo_row, {{0, words}}), 0, 1);
        op.written = signal_at(0);
        op.wait[0] = room_for(counter::PARAMETERS_, 0, -1, 1);
        e_.code.tile(first_tile, op);
    }

    /// 32768 over the sum in units of 65535, in four lanes.
    void take_reciprocal() const {
        const std::uint32_t all = room_.exponential_bytes() / 4;
        program::LoadTable load;
        load.table = table_of(spec::inverse_root_65536);
        e_.code.tile(first_tile, load);
        program::Tensor sum = word_copy();
        sum.kind = program::TensorKind::sum;
        sum.par_16bit = sum.table = sum.table_normalised = sum.out_16bit = true;
        sum.scale = sixteen_bit_step;
        sum.loops = loops({1, all});
        sum.in = nest(8, 0, {});
        sum.out = nest(8, small_, {{4, 2}});
        sum.par = rotating(nest(8, 4 * fifo_row, {{1, 1}, {0, all}}), 1, 4);
        sum.par.mask = 0;
        sum.acc = rotating(nest(8, 0, {{0, all}}), 1, 4);
        sum.group_level = 2;
        sum.reduction_mask = 3;
        sum.avdata = signal_at(1);
        sum.parameters = signal_at(1);
        sum.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
        e_.code.tile(first_tile, sum);
        feed(exponentials_, all);
        e_.code.full_stop();
        to_rows(small_, 4, 1, step_row, 0);
        program::Tensor square = word_copy();
        square.in_16bit = square.par_16bit = square.out_16bit = true;
        square.scale = sixteen_bit_step;
        square.clamp_min = 0;
        square.clamp_max = largest_reciprocal;
        square.loops = loops({1});
        square.in = nest(8, small_, {});
        square.out = nest(8, small_ + 16, {{4, 2}});
        square.par = nest(8, 4 * step_row, {});
        square.acc = rotating(nest(8, 0, {}), 1, 4);
        square.group_level = 1;
        square.avdata = signal_at(1);
        e_.code.tile(first_tile, square);
        e_.code.full_stop();
    }

    /// Eight exponentials become a row: a half of four lanes is a word of the result.
    void multiply() const {
        const std::uint32_t rows = room_.exponential_bytes() / 16;
        const std::int32_t result = out_.address(0, 0, 0);
        const bool whole = 2 * rows == words_;
        program::Tensor op = word_copy();
        op.in_16bit = op.par_16bit = true;
        op.scale = product_scale;
        op.clamp_min = 0;
        op.clamp_max = 255;
        op.loops = loops({2, rows});
        op.in = nest(8, small_ + 16, {{0, 2 * rows}});
        op.out = nest(8, whole ? result : values_, {{4, 2 * rows}});
        op.par = rotating(nest(8, 4 * fifo_row, {{2, 2}, {0, rows}}), 1, 4);
        op.acc = rotating(nest(8, 0, {{0, 2}, {0, rows}}), 0, 4);
        op.group_level = 2;
        op.avdata = signal_at(1);
        op.parameters = signal_at(1);
        op.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
        e_.code.tile(first_tile, op);
        program::NarrowToWide feed;
        feed.src = nest(6, exponentials_ / 4, {{2, 2}, {1, 2}, {4, rows}});
        feed.dst = rotating(nest(4, fifo_row, {{0, rows}}), 0, 1);
        feed.written = signal_at(0);
        feed.wait[0] = room_for(counter::PARAMETERS_, 0, -1, 1);
        feed.format = spec::RowFormat::transpose_halfwords_;
        feed.row_level = 2;
        e_.code.tile(first_tile, feed);
        if (whole) return;
        e_.code.full_stop();
        e_.code.tile(first_tile, word_by_word(values_, result, words_));
    }

    Emission& e_;
    const Tensor &in_, &out_;
    float scale_;
    std::uint32_t words_;
    SoftmaxRoom room_;
    bool fills_rows_ = false;
    // Bytes of narrow memory.
    std::int32_t values_ = 0, units_ = 0, distances_ = 0, exponentials_ = 0, small_ = 0;
};

}  // namespace

void emit(Emission& e, const Step& step, const SoftmaxStep& kind) {
    SoftmaxWriter(e, step, kind).run();
}

}  // namespace reef::edgetpu::lowering
