// The vendor's program of a dense layer: each tile receives a slice of the input, all of them
// gather it, and each computes 64 units.
#include "edgetpu/compiler/vendor_schedule.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t slice_words = 16;
constexpr std::uint32_t tiles_of_row = 4;
/// Where a slice waits to be sent.
constexpr std::int32_t slice_row = top_row - 6;

class DenseWriter {
  public:
    explicit DenseWriter(Emission& e)
        : e_(e),
          step_(e.plan.steps.back()),
          kind_(std::get<ConvolutionStep>(step_.kind)),
          in_(e.tensor(step_.in.front())),
          words_(in_.channels / 4),
          staging_(words_ + static_cast<std::int32_t>(dense_staging_words)),
          rows_(in_.channels / static_cast<std::int32_t>(spec::row_bytes)),
          slots_(top_row - 2 * rows_),
          tiles_(static_cast<TileSet>((1U << e.tensor(step_.out).spread_tiles) - 1)) {}

    void run() {
        begin_computing(e_);
        wait_for_rows(e_.code);
        ask_for_input(e_, in_);
        receive_slices();
        e_.code.fence();
        e_.code.fence(all_but_producers);
        wait_until_idle(e_.code);
        gather();
        wait_until_idle(e_.code);
        e_.code.fence(all_but_producers);
        program::Sync idle;
        idle.engines = Emitter::awaited_engines;
        e_.code.scalar(idle);
        e_.code.fence(all_but_producers);
        e_.code.tile(tiles_, factors());
        e_.code.tile(tiles_, product());
        e_.code.fence(all_but_producers);
        e_.code.fence(all_but_producers, notification::core_);
        e_.code.wait_for_tiles();
        wait_until_idle(e_.code);
        emit_output(e_, e_.plan.outputs.front(), [&](unsigned tile) { return result(tile); });
    }

  private:
    /// Four tiles get a row of 256 bytes, of which each keeps its quarter.
    void receive_slices() {
        for (unsigned j = 0; j < tiles_of_row; ++j) {
            TileSet tiles = 0;
            for (std::int32_t r = 0; r < rows_; ++r)
                tiles = static_cast<TileSet>(tiles |
                                             1U << (tiles_of_row * static_cast<unsigned>(r) + j));
            e_.code.tile(tiles, slice(j));
        }
        const std::int64_t units = spec::row_bytes / spec::activation_unit_bytes;
        for (std::int32_t r = 0; r < rows_; ++r) {
            program::RingReceive take;
            take.ring = program::Ring::a;
            take.dst = rotating(nest(4, slots_, {{1, 1}}), 1, rows_);
            take.dst.mask = rows_ > 1 ? 1 : 0;
            take.ring_read = signal_at(1);
            take.wait[0] = room_for(counter::WIDE_TO_NARROW_, 1, -64 * rows_, 64 * rows_);
            const auto tiles = static_cast<TileSet>(((1U << tiles_of_row) - 1)
                                                    << tiles_of_row * static_cast<unsigned>(r));
            e_.code.tile(tiles, take);
            e_.code.scalar(push_of_input(r * units, units, tiles));
        }
    }
    program::WideToNarrow slice(unsigned j) const {
        program::WideToNarrow op;
        op.src = nest(4, slots_, {{1, 1}});
        op.src.mask = 0;
        op.dst = rotating(nest(6, staging_, {{1, count(slice_words)}}), 1, 64);
        if (j != 0) {
            const auto skipped = static_cast<std::int32_t>(j) * slice_words;
            op.skip = {.enabled = true,
                       .level = 1,
                       .base = staging_,
                       .count = count(skipped),
                       .last = staging_ + skipped - 1};
        }
        op.written = signal_at(0);
        op.wait[0] = wait_for(counter::RING_READ_A_, 1, 1, 1);
        op.wait[1] = room_for(counter::AVDATA_, 1, -1, 1);
        op.row_level = j == 0 ? 1 : 2;
        return op;
    }

    /// From each tile's slice to all of the input on all tiles that compute.
    void gather() {
        const std::int32_t slices = in_.channels / 64;
        for (std::int32_t s = 0; s < slices; ++s) {
            program::WideToNarrow store;
            store.src = rotating(nest(4, output_row, {{1, 1}}), 1, 1);
            store.src.mask = 0;
            store.dst = nest(6, slice_words * s, {{1, count(slice_words)}});
            store.written = signal_at(0);
            store.wait[0] = wait_for(counter::RING_READ_A_, 1, s + 1, 1);
            store.row_level = 1;
            e_.code.tile(tiles_, store);
            program::RingReceive take;
            take.ring = program::Ring::a;
            take.dst = rotating(nest(4, output_row, {{1, 1}}), 1, 1);
            take.dst.mask = 0;
            take.ring_read = signal_at(1);
            take.wait[0] = room_for(counter::WIDE_TO_NARROW_, 1, slice_words * s - 64, 64);
            e_.code.tile(tiles_, take);
            const auto tile = static_cast<TileSet>(1U << s);
            program::RingSend send;
            send.src = rotating(nest(4, slice_row, {{1, 1}}), 1, 1);
            send.src.mask = 1;
            send.ring_write = signal_at(1);
            send.producer = signal_at(2);
            send.wait[0] = wait_for(counter::RING_PRODUCER_A_, 2, e_.next_message_a(), 1);
            send.wait[1] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
            send.to_tiles = tiles_;
            e_.code.tile(tile, send);
            ++e_.messages_a;
            e_.code.tile(tile, to_row(staging_, slice_row));
        }
    }
    static program::NarrowToWide to_row(std::int32_t from, std::int32_t row) {
        program::NarrowToWide op;
        op.src = nest(6, from, {{1, count(slice_words)}});
        op.dst = rotating(nest(4, row, {{1, 1}}), 1, 1);
        op.dst.mask = 0;
        op.written = signal_at(1);
        op.wait[0] = room_for(counter::RING_WRITE_, 1, -1, 1);
        op.row_level = 1;
        return op;
    }

    static program::WideToNarrow factors() {
        program::WideToNarrow op;
        op.src = nest(4, 0, {{1, 1}});
        op.src.mask = 1;
        op.dst = rotating(nest(6, 0, {{1, lanes / 2}, {64, 1}}), 2, 32);
        op.written = signal_at(2);
        op.wait[0] = room_for(counter::AVDATA_, 2, -1, 1);
        op.to_scaling = true;
        op.row_level = 1;
        return op;
    }
    program::Tensor product() const {
        const std::uint32_t words = count(words_);
        program::Tensor op = word_copy();
        apply(op, kind_.scaling);
        op.lanes = op.last_lanes = lanes;
        op.lane_scale = op.par_zero_set = op.par_zero_rows = true;
        op.zero_row_first = op.zero_row_last = op.zero_row_step = 1;
        op.loops = loops({words});
        op.in = nest(8, 0, {{4, words}, {4 * words_, 1}, {4 * words_, 1}});
        op.out = nest(8, in_.channels, {{4, lanes / 4}, {lanes, 1}, {lanes, 1}});
        op.par = nest(8, 4 * static_cast<std::int32_t>(front_rows), {{4, words}});
        op.acc = nest(8, 0, {{0, words}});
        op.group_level = 1;
        op.reduction_mask = 1;
        op.avdata = signal_at(2);
        op.parameters = signal_at(1);
        op.wait[0] = wait_for(counter::WIDE_TO_SCALING_, 1, 1, 1);
        return op;
    }
    std::optional<program::NarrowToWide> result(unsigned tile) const {
        if ((tiles_ >> tile & 1U) == 0) return std::nullopt;
        return to_row(words_, output_row);
    }

    Emission& e_;
    const Step& step_;
    const ConvolutionStep& kind_;
    const Tensor& in_;
    std::int32_t words_, staging_;
    std::int32_t rows_, slots_;  ///< of the input's bytes, and where they arrive
    TileSet tiles_;
};

/// The tiles' rows in front and those behind them, of all tiles before any are sent.
void load_dense(const ParameterLayer& layer, Emitter& code) {
    for (const auto& piece : layer.pieces) {
        program::RingReceive take;
        take.ring = program::Ring::a;
        take.dst = nest(4, front_rows, {{1, piece.count - front_rows}});
        take.head = {.enabled = true,
                     .level = 0,
                     .base = 0,
                     .count = front_rows,
                     .last = front_rows - 1,
                     .rows = front_rows};
        code.tile(static_cast<TileSet>(1U << piece.tile), take);
    }
    std::int64_t first = 0;
    for (const auto& piece : layer.pieces) {
        code.scalar(push_of_parameters(layer, piece, first));
        first += std::int64_t{piece.count} * layer.row_bytes / spec::parameter_unit_bytes;
    }
}

}  // namespace

Result<Programs> emit_dense_as_vendor(const Plan& plan, const EmitOptions& options) {
    Emission e(plan);
    DenseWriter(e).run();
    end_computing(e, 1U << scalar_counter::PRODUCER_A_);
    return finish(e, {}, options, [&](Emitter& code) { load_dense(plan.layers.front(), code); });
}

}  // namespace reef::edgetpu::lowering
