// The vendor's program of a 3x3 convolution: tiles receive their rows of the image and copy their
// columns of it between the borders, which neighbours fill; one tile sends the parameters to all.
#include "edgetpu/compiler/vendor_schedule.h"

namespace reef::edgetpu::lowering {
namespace {

using program::Direction;

/// Pixels of more words are sent in pieces.
constexpr std::uint32_t most_words_of_piece = 16;

constexpr TileSet row_of_tiles(unsigned row) {
    return static_cast<TileSet>(((1U << grid) - 1) << grid * row);
}
constexpr TileSet column_of_tiles(unsigned column) {
    TileSet tiles = 0;
    for (unsigned r = 0; r < grid; ++r)
        tiles = static_cast<TileSet>(tiles | 1U << (grid * r + column));
    return tiles;
}

class ConvolutionAsVendor {
  public:
    explicit ConvolutionAsVendor(Emission& e)
        : e_(e),
          step_(e.plan.steps.back()),
          kind_(std::get<ConvolutionStep>(step_.kind)),
          in_(e.tensor(step_.in.front())),
          g_(in_.height, in_.width, in_.channels) {}

    void run() {
        begin_computing(e_);
        emit_identity(e_, g_.identity, identity_row());
        wait_for_rows(e_.code);
        e_.code.tile(every_tile, into_image(0, g_.height - 1));
        ask_for_input(e_, in_);
        receive();
        e_.code.fence();
        e_.code.tile(every_tile, into_image(g_.height - 1, 1));
        e_.code.fence(all_but_producers);
        borders();
        wait_until_idle(e_.code);
        compute();
        wait_until_idle(e_.code);
        emit_output(e_, e_.plan.outputs.front(), [&](unsigned) { return result(); });
    }

  private:
    [[nodiscard]] std::int32_t identity_row() const { return g_.slots - 1; }
    [[nodiscard]] std::uint32_t image_rows() const { return count(g_.height); }

    /// Rows from `first` on, which arrive in two places in turn. The last row is copied when all of
    /// it that the tile wants is there, without what its other columns send.
    program::Tensor into_image(std::int32_t first, std::int32_t rows) const {
        const std::uint32_t words = count(g_.words), width = count(g_.width), n = count(rows);
        program::Tensor op = word_copy();
        op.loops = loops({1, words, width, n});
        op.in = rotating(nest(8, 4 * (g_.staging + first % 2 * g_.image_row),
                              {{4, words}, {4 * g_.words, width}, {0, n}}),
                         2, 4 * g_.image_row);
        op.in.mask = 0b11;
        op.out = nest(8, 4 * ((1 + first) * g_.pitch + g_.words),
                      {{4, words}, {4 * g_.words, width}, {4 * g_.pitch, n}, {4 * g_.staging, 1}});
        op.par = nest(8, 4 * identity_row(), {{0, words}, {0, 1}, {0, width}, {0, n}});
        op.acc = rotating(nest(8, 0, {{0, words}, {0, 1}, {0, width}, {0, n}}), 0, 4);
        op.group_level = 4;
        op.avdata = signal_at(2);
        const bool all_of_rows = first == 0 && g_.height > 1;
        const std::int32_t arrived =
            all_of_rows ? g_.image_row : first * g_.image_row + g_.width * g_.words;
        op.wait[0] = wait_for(counter::WIDE_TO_NARROW_, 3, arrived, g_.image_row);
        return op;
    }

    void receive() {
        if (g_.height > 2) {
            program::Fence reset;
            reset.tiles = every_tile;
            reset.reset_counters = 1U << counter::WIDE_TO_NARROW_;
            e_.code.scalar(reset);
        }
        for (unsigned c = 0; c < grid; ++c) e_.code.tile(column_of_tiles(c), store(c));
        const std::int64_t units = std::int64_t{g_.height} * in_.width * in_.channels /
                                   static_cast<std::int64_t>(spec::activation_unit_bytes);
        for (unsigned r = 0; r < grid; ++r) {
            program::RingReceive take;
            take.ring = program::Ring::a;
            take.dst = messages();
            take.ring_read = signal_at(1);
            take.wait[0] =
                room_for(counter::WIDE_TO_NARROW_, 1, -64 * g_.message_rows, 64 * g_.message_rows);
            e_.code.tile(row_of_tiles(r), take);
            e_.code.scalar(push_of_input(units * r, units, row_of_tiles(r)));
        }
    }
    /// Slots of an image row's messages, twice.
    [[nodiscard]] LoopNest messages() const {
        const std::int32_t all = (g_.height * g_.image_row + static_cast<std::int32_t>(lanes) - 1) /
                                 static_cast<std::int32_t>(lanes);
        const std::int32_t passes = (all + g_.message_rows - 1) / g_.message_rows;
        LoopNest out = nest(4, g_.slots, {{1, count(g_.message_rows)}, {0, count(passes)}});
        if (const std::int32_t last = all % g_.message_rows; last != 0) {
            out.crop_level = 1;
            out.crop_count = count(last);
            out.crop_left_out = count(g_.message_rows - last);
        }
        return rotating(out, 1, g_.message_rows);
    }
    /// What columns to the left have of a row is thrown away.
    program::WideToNarrow store(unsigned column) const {
        const std::int32_t skipped = static_cast<std::int32_t>(column) * g_.width * g_.words;
        program::WideToNarrow op;
        op.src = messages();
        op.dst = nest(6, g_.staging, {{1, count(g_.image_row)}, {0, image_rows()}});
        if (column != 0) {
            op.dst.crop_level = 1;
            op.dst.crop_count = count(g_.image_row - skipped);
            op.dst.crop_left_out = count(skipped);
            op.skip = {.enabled = true,
                       .level = 1,
                       .base = g_.staging,
                       .count = count(skipped),
                       .last = g_.staging + skipped - 1};
        }
        op.dst = rotating(op.dst, 1, g_.image_row);
        op.written = signal_at(0);
        op.wait[0] = wait_for(counter::RING_READ_A_, 1, 1, 1);
        op.wait[1] = room_for(counter::AVDATA_, 1, -1, 1);
        op.row_level = 2;
        return op;
    }

    /// What a tile sends its neighbour, or fills in where it has none.
    struct Border {
        Direction to{};
        std::int32_t source = 0, target = 0;  ///< words
        std::uint32_t pixels = 0;
        std::int32_t stride = 0;  ///< words from one to the next
        bool waits = false;       ///< for the rows that came from the other axis
    };

    /// Rows first, then columns with the corners.
    void borders() {
        const std::int32_t h = g_.height, w = g_.width, pixel = g_.words, pitch = g_.pitch;
        const Border north{Direction::north, pitch + pixel, (h + 1) * pitch + pixel, count(w),
                           pixel};
        const Border south{Direction::south, h * pitch + pixel, pixel, count(w), pixel};
        const Border west{Direction::west, pixel, (w + 1) * pixel, count(h + 2), pitch, true};
        const Border east{Direction::east, w * pixel, 0, count(h + 2), pitch, true};
        const TileSet rows = static_cast<TileSet>(row_of_tiles(1) | row_of_tiles(2));
        const TileSet columns = static_cast<TileSet>(column_of_tiles(1) | column_of_tiles(2));
        send(north, row_of_tiles(0), false, false);
        send(north, rows, true, false);
        send(north, row_of_tiles(3), true, true);
        send(south, row_of_tiles(0), true, true);
        send(south, rows, true, false);
        send(south, row_of_tiles(3), false, false);
        send(west, column_of_tiles(0), false, false);
        send(west, columns, true, false);
        send(west, column_of_tiles(3), true, true);
        send(east, column_of_tiles(0), true, true);
        send(east, columns, true, false);
        send(east, column_of_tiles(3), false, false);
    }

    void send(const Border& border, TileSet tiles, bool sends, bool fills) {
        const std::uint32_t words = count(g_.words);
        const std::uint32_t piece = std::min(words, most_words_of_piece);
        std::vector<Dimension> walk{{1, piece}, {border.stride, border.pixels}};
        if (words > piece) walk.push_back({static_cast<std::int32_t>(piece), words / piece});
        program::Mesh op;
        op.to = border.to;
        op.src = sends ? nest(4, border.source, walk) : nest(4, 0, {});
        op.dst = nest(4, border.target, walk);
        const std::uint32_t mask = (1U << walk.size()) - 1;
        op.dst.mask = mask;
        if (sends) op.src.mask = mask;
        op.in = signal_at(2);
        op.fills = fills;
        if (fills) op.fill_value = static_cast<std::uint32_t>(in_.zero) * 0x01010101U;
        if (border.waits && sends) {
            op.wait[0] = wait_for(counter::MESH_NORTH_IN_, 2, 1, 1);
            op.wait[1] = wait_for(counter::MESH_SOUTH_IN_, 2, 1, 1);
        }
        e_.code.tile(tiles, op);
    }

    void compute() {
        const std::uint32_t rows = count(g_.group_rows);
        const std::uint32_t chunks = g_.inner ? 1 : count(g_.words);
        program::RingReceive take;
        take.ring = program::Ring::b;
        take.dst = rotating(nest(4, g_.body, {{1, rows}, {0, chunks}, {0, 1}, {0, g_.groups}}), 1,
                            g_.group_rows);
        take.head = {.enabled = true,
                     .level = g_.inner ? 1U : 2U,
                     .base = g_.head,
                     .count = front_rows,
                     .last = g_.head + 2 * static_cast<std::int32_t>(front_rows) - 1,
                     .rows = front_rows};
        take.ring_read = signal_at(1);
        take.wait[0] = room_for(counter::PARAMETERS_, 1, -1, 1);
        e_.code.tile(every_tile, take);
        e_.code.tile(every_tile, factors(static_cast<std::int32_t>(chunks)));
        e_.code.tile(every_tile, product(chunks));
        program::RingSend send;
        send.ring = program::Ring::b;
        send.src = nest(4, 0, {{1, count(g_.parameter_rows())}});
        send.producer = signal_at(0);
        send.wait[0] = wait_for(counter::RING_PRODUCER_B_, 1, 0, 1);
        send.to_tiles = every_tile;
        e_.code.tile(1, send);
        e_.messages_b += count(g_.parameter_rows());
    }
    program::WideToNarrow factors(std::int32_t chunks) const {
        program::WideToNarrow op;
        op.src = rotating(nest(4, g_.head, {{1, 1}, {0, g_.groups}}), 1,
                          static_cast<std::int32_t>(front_rows));
        op.src.mask = 1;
        op.dst = rotating(nest(6, 0, {{1, g_.group_lanes / 2}, {64, 1}, {0, g_.groups}}), 2, 32);
        op.dst.mask = 0b11;
        op.written = signal_at(2);
        op.wait[0] = wait_for(counter::RING_READ_B_, 1, 1, chunks);
        op.wait[1] = room_for(counter::AVDATA_, 2, -1, 1);
        op.to_scaling = true;
        op.row_level = 1;
        return op;
    }

    program::Tensor product(std::uint32_t chunks) const {
        constexpr std::uint32_t side = 3;
        const std::uint32_t rows = count(g_.group_rows), positions = count(g_.positions);
        const std::int32_t pixel = in_.channels, pitch = 4 * g_.pitch;
        const std::uint32_t w = count(g_.width), h = count(g_.height);
        program::Tensor op = word_copy();
        apply(op, kind_.scaling);
        op.lanes = op.last_lanes = g_.group_lanes;
        op.lane_scale = op.par_zero_set = op.par_zero_rows = true;
        op.zero_row_first = g_.head + 1;
        op.zero_row_last = g_.head + 2 * static_cast<std::int32_t>(front_rows) - 1;
        op.zero_row_step = static_cast<std::int32_t>(front_rows);
        op.acc_internal = g_.inner;
        op.loops = loops({rows, positions, chunks, g_.groups});
        if (g_.inner) {
            op.in = nest(8, 0,
                         {{4, side * count(g_.words)},
                          {pitch, side},
                          {pixel, 1},
                          {pixel, w},
                          {pitch, h},
                          {0, g_.groups}});
            op.in.mask = 0b11111;
        } else {
            op.in = nest(8, 0,
                         {{4, 1},
                          {pixel, side},
                          {pitch, side},
                          {pixel, w},
                          {pitch, h},
                          {4, chunks},
                          {0, g_.groups}});
            op.in.mask = 0b111111;
        }
        op.out = nest(8, 4 * g_.staging,
                      {{4, g_.group_lanes / 4},
                       {pixel, positions},
                       {static_cast<std::int32_t>(g_.group_lanes), g_.groups}});
        op.out.mask = 0b111;
        op.par =
            rotating(nest(8, 4 * g_.body, {{4, rows}, {0, positions}, {0, chunks}, {0, g_.groups}}),
                     2, 4 * g_.group_rows);
        op.par.mask = 1;
        op.acc = nest(8, 4 * g_.sums,
                      {{0, rows}, {g_.inner ? 0 : 4, positions}, {0, chunks}, {0, g_.groups}});
        if (g_.inner) op.acc = rotating(op.acc, 1, 4);
        op.group_level = g_.inner ? 2 : 3;
        op.reduction_mask = g_.inner ? 0b1 : 0b101;
        op.avdata = signal_at(2);
        op.parameters = signal_at(2);
        op.wait[0] = wait_for(counter::RING_READ_B_, 2, 1, 1);
        op.wait[1] = wait_for(counter::WIDE_TO_SCALING_, g_.inner ? 2 : 3, 1, 1);
        return op;
    }

    std::optional<program::NarrowToWide> result() const {
        const auto words = count(g_.words), width = count(g_.width);
        program::NarrowToWide op;
        op.src = nest(6, g_.staging,
                      {{1, words}, {g_.words, width}, {g_.words * g_.width, image_rows()}});
        op.src.mask = 0b111;
        const std::uint32_t rows = (count(g_.output_words()) + lanes - 1) / lanes;
        op.dst = rotating(nest(4, output_row, {{0, rows}}), 0, 1);
        op.written = signal_at(0);
        op.wait[0] = room_for(counter::RING_WRITE_, 0, -1, 1);
        op.row_level = 3;
        return op;
    }

    Emission& e_;
    const Step& step_;
    const ConvolutionStep& kind_;
    const Tensor& in_;
    ConvolutionGeometry g_;
};

}  // namespace

Result<Programs> emit_convolution_as_vendor(const Plan& plan, const EmitOptions& options) {
    Emission e(plan);
    ConvolutionAsVendor(e).run();
    end_computing(e, 1U << scalar_counter::PRODUCER_A_ | 1U << scalar_counter::PRODUCER_B_);
    return finish(e, {}, options, [&](Emitter& code) { load_pieces(plan, code); });
}

}  // namespace reef::edgetpu::lowering
