// Convolutions: parameters come over a ring while the tensor engine works, in two slots.
#include <algorithm>
#include <utility>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::uint32_t relay_inner = 64;
/// Relay units that wait for their ring_push at most.
constexpr std::int64_t relay_credit = 127;
constexpr std::int64_t streamed_credit = 2044;

/// Of a pixel of the result, on a tile of a spread layer: by pixels one tile has all of them.
std::uint32_t words_of_share(const ParameterLayer& layer, const Tensor& out, unsigned tile) {
    return out.layout == Layout::channels ? out.words_on(tile)
                                          : (count(layer.source->out_channels) + 3) / 4;
}

class ConvolutionWriter {
  public:
    ConvolutionWriter(Emission& e, const Step& step, const ConvolutionStep& kind,
                      const Emission::Ahead& before)
        : e_(e),
          before_(before),
          kind_(kind),
          layer_(e.plan.layers[kind.layer]),
          s_(layer_.schedule),
          in_(e.tensor(step.in[0])),
          out_(e.tensor(step.out)),
          first_channel_(step.first_channel),
          channels_(count(layer_.source->out_channels)) {
        for (unsigned t = 0; t < all_tiles; ++t)
            if (!kind.phase.of(out_.own(t)).empty())
                tiles_ = static_cast<TileSet>(tiles_ | 1U << t);
    }

    /// Of a spread layer, whose tiles from `first` to `end` have equally many channels.
    void take_share(unsigned first, unsigned end) {
        tiles_ = static_cast<TileSet>((1U << end) - (1U << first));
        fixed_row_ = static_cast<std::int32_t>(layer_.pieces.front().row);
        const std::uint32_t words = words_of_share(layer_, out_, first);
        channels_ = std::min(channels_ - count(out_.channels) * (first - layer_.first_tile),
                             count(out_.channels));
        s_.groups = kind_.depthwise ? words : (channels_ + lanes - 1) / lanes;
        if (s_.groups == 1) s_.lanes = std::min(s_.lanes, 4 * words);
    }

    void load() {
        e_.code.by_class([&](unsigned t) { return receive(t); }, tiles_);
        if (layer_.streamed)
            stream();
        else if (layer_.relayed)
            relay();
        else
            send_pieces();
    }
    void compute() {
        e_.code.by_class([&](unsigned t) { return heads(t); }, tiles_);
        e_.code.by_class([&](unsigned t) { return product(t); }, tiles_);
    }

  private:
    [[nodiscard]] bool on_ring_a() const { return layer_.relayed || layer_.streamed; }
    [[nodiscard]] unsigned ring_counter() const {
        return on_ring_a() ? counter::RING_READ_A_ : counter::RING_READ_B_;
    }
    [[nodiscard]] bool by_channel() const { return s_.head_rows == 3; }
    /// From one group of a spread layer to the next.
    [[nodiscard]] std::int32_t fixed_rows() const {
        return static_cast<std::int32_t>(s_.rows_of_group());
    }

    /// Rows of visits, in the order of reading: where two take turns, and where several are there.
    [[nodiscard]] LoopNest body_rows() const {
        const auto rows = static_cast<std::int32_t>(s_.group_rows);
        if (s_.groups_ahead == 0)
            return rotating(
                nest(4, s_.body, {{1, s_.group_rows}, {0, s_.chunks}, {0, 1}, {0, s_.groups}}), 1,
                rows);
        return nest(4, s_.body,
                    {{1, s_.group_rows},
                     {rows, s_.chunks},
                     {rows * static_cast<std::int32_t>(s_.chunks), s_.groups_ahead},
                     {0, s_.groups / s_.groups_ahead}});
    }

    std::optional<program::RingReceive> receive(unsigned t) const {
        // The rows in front of a group are read until its last visit.
        const auto first = static_cast<std::int32_t>(s_.groups_ahead == 0 ? 1 : s_.chunks) -
                           static_cast<std::int32_t>(s_.slots());
        program::RingReceive op;
        op.ring = on_ring_a() ? program::Ring::a : program::Ring::b;
        op.dst = body_rows();
        op.head = {.enabled = true,
                   .level = s_.inner ? 1U : 2U,
                   .base = s_.head,
                   .count = s_.head_rows,
                   .last = s_.head + static_cast<std::int32_t>(s_.head_slots() * s_.head_rows) - 1,
                   .rows = s_.head_rows};
        op.ring_read = signal_at(1);
        // Early rows that lie on no others wait for nothing, so that the counter may begin anew.
        if (!before_.early || !s_.is_whole())
            op.wait[0] = room_for(counter::PARAMETERS_, 1, first + before_.consumed[t], 1);
        return op;
    }

    /// Factors and biases to scaling memory; zero points are read where they are.
    std::optional<program::WideToNarrow> heads(unsigned t) const {
        const auto rows = static_cast<std::int32_t>(s_.head_rows);
        program::WideToNarrow op;
        if (fixed_row_)
            op.src = nest(4, *fixed_row_, {{1, by_channel() ? 2U : 1U}, {fixed_rows(), s_.groups}});
        else if (s_.groups_ahead == 0)
            op.src =
                rotating(nest(4, s_.head, {{1, by_channel() ? 2U : 1U}, {0, s_.groups}}), 1, rows);
        else
            op.src = nest(4, s_.head,
                          {{1, by_channel() ? 2U : 1U},
                           {rows, s_.groups_ahead},
                           {0, s_.groups / s_.groups_ahead}});
        op.dst =
            rotating(nest(6, by_channel() ? 0 : 64,
                          {{1, s_.row_lanes / 2}, {64, by_channel() ? 2U : 1U}, {0, s_.groups}}),
                     2, 32);
        op.written = signal_at(2);
        op.wait[fixed_row_ ? 0 : 1] = room_for(counter::AVDATA_, 2, -1, 1);
        if (!fixed_row_)
            op.wait[0] = wait_for(ring_counter(), 1, before_.received[t] + 1,
                                  static_cast<std::int32_t>(s_.chunks));
        op.to_scaling = true;
        op.row_level = 1;
        return op;
    }

    [[nodiscard]] std::vector<Dimension> input_dimensions(std::int32_t pixel, std::int32_t pitch,
                                                          std::uint32_t h, std::uint32_t w) const {
        const Window& win = kind_.window;
        const std::uint32_t words = in_.words(), taps_h = count(win.kernel_h),
                            taps_w = count(win.kernel_w);
        const Dimension x{pixel * win.stride_w, w}, y{pitch * win.stride_h, h};
        const Dimension tap_x{pixel * win.dilation_w, taps_w};
        const Dimension tap_y{pitch * win.dilation_h, taps_h};
        if (kind_.depthwise) {
            if (s_.groups == words || fixed_row_)
                return {{4, 1}, tap_x, tap_y, x, y, {4, s_.groups}};
            return {{4, 1}, tap_x, tap_y, x, y, {0, s_.groups / words}, {4, words}};
        }
        const bool one_tap = taps_h * taps_w == 1;
        const bool dense = one_tap && win.stride_h == 1 && win.stride_w == 1 &&
                           pitch == static_cast<std::int32_t>(w) * pixel;
        if (one_tap && s_.inner) {
            if (dense) return {{4, words}, {pixel, 1}, {pixel, w * h}, {0, s_.groups}};
            return {{4, words}, {pixel, 1}, x, y, {0, s_.groups}};
        }
        if (one_tap) {
            const Dimension chunk{4 * static_cast<std::int32_t>(s_.group_rows), s_.chunks};
            if (dense) return {{4, s_.group_rows}, {pixel, w * h}, chunk, {0, s_.groups}};
            return {{4, s_.group_rows}, x, y, chunk, {0, s_.groups}};
        }
        if (!s_.inner) return {{4, 1}, tap_x, tap_y, x, y, {4, words}, {0, s_.groups}};
        if (win.dilation_w == 1)
            return {{4, taps_w * words}, tap_y, {pixel, 1}, x, y, {0, s_.groups}};
        return {{4, words}, tap_x, tap_y, x, y, {0, s_.groups}};
    }

    /// Rows that lie one behind the other are one loop.
    void set_output(program::Tensor& op, std::int32_t to, std::int32_t pixel, std::int32_t pitch,
                    std::uint32_t h, std::uint32_t w) const {
        const bool flat = pitch == static_cast<std::int32_t>(w) * pixel;
        std::vector<Dimension> out{{4, s_.lanes / 4}};
        if (flat)
            out.push_back({pixel, w * h});
        else
            out.insert(out.end(), {{pixel, w}, {pitch, h}});
        out.push_back({static_cast<std::int32_t>(s_.lanes), s_.groups});
        op.out = nest(8, to, out);
        op.avdata = signal_at(flat ? 2 : 3);
        const std::uint32_t rest = channels_ % lanes;
        if (kind_.depthwise || channels_ <= lanes || rest == 0) return;
        op.last_lanes = (rest + 3) / 4 * 4;
        if (op.last_lanes == lanes) return;
        op.out.crop_count = op.last_lanes / 4;
        op.out.crop_level = flat ? 2 : 3;
        op.out.crop_left_out = (lanes - op.last_lanes) / 4 * 4;
    }

    [[nodiscard]] LoopNest parameter_rows(std::uint32_t positions) const {
        std::vector<Dimension> par{{4, s_.group_rows}, {0, positions}};
        const auto quarters = 4 * static_cast<std::int32_t>(s_.group_rows);
        if (fixed_row_) {
            if (!kind_.depthwise) par.push_back({0, s_.chunks});
            par.push_back({4 * fixed_rows(), s_.groups});
            return nest(8, 4 * (*fixed_row_ + static_cast<std::int32_t>(s_.head_rows)), par);
        }
        if (s_.groups_ahead == 0) {
            if (!kind_.depthwise) par.push_back({0, s_.chunks});
            par.push_back({0, s_.groups});
            return rotating(nest(8, 4 * s_.body, par), 2, quarters);
        }
        par.insert(par.end(), {{quarters, s_.chunks},
                               {quarters * static_cast<std::int32_t>(s_.chunks), s_.groups_ahead},
                               {0, s_.groups / s_.groups_ahead}});
        return nest(8, 4 * s_.body, par);
    }

    void set_parameters(program::Tensor& op, unsigned tile, std::uint32_t positions) const {
        std::vector<Dimension> acc{{0, s_.group_rows}, {s_.inner ? 0 : 4, positions}};
        if (!kind_.depthwise) acc.push_back({0, s_.chunks});
        acc.push_back({0, s_.groups});
        op.par = parameter_rows(positions);
        // In the instruction's own memory sums take turns; in wide memory each has its place.
        op.acc = s_.inner ? rotating(nest(8, 0, acc), 1, 4) : nest(8, 4 * s_.partial_sums, acc);
        op.parameters = signal_at(2);
        op.wait[fixed_row_ ? 0 : 1] = wait_for(counter::WIDE_TO_SCALING_, s_.inner ? 2 : 3, 1, 1);
        if (!fixed_row_) op.wait[0] = wait_for(ring_counter(), 2, before_.received[tile] + 1, 1);
    }

    std::optional<program::Tensor> product(unsigned t) const {
        const Phase& phase = kind_.phase;
        const Area own = phase.of(out_.own(t));
        if (own.empty()) return std::nullopt;
        const auto h = count(own.rows.size()), w = count(own.columns.size());
        const Window& win = kind_.window;
        program::Tensor op;
        op.par_zero_set = op.bias = true;
        op.acc_internal = s_.inner;
        op.lanes = op.last_lanes = s_.lanes;
        apply(op, kind_.scaling);
        op.loops = kind_.depthwise ? loops({s_.group_rows, h * w, s_.groups})
                                   : loops({s_.group_rows, h * w, s_.chunks, s_.groups});
        op.in = nest(8,
                     in_.address(t, own.rows.begin * win.stride_h - win.top,
                                 own.columns.begin * win.stride_w - win.left),
                     input_dimensions(static_cast<std::int32_t>(in_.pixel_bytes()),
                                      static_cast<std::int32_t>(in_.pitch(t)), h, w));
        set_output(op,
                   out_.address(t, own.rows.begin * phase.stride_h + phase.y,
                                own.columns.begin * phase.stride_w + phase.x) +
                       first_channel_,
                   static_cast<std::int32_t>(out_.pixel_bytes()) * phase.stride_w,
                   static_cast<std::int32_t>(out_.pitch(t)) * phase.stride_h, h, w);
        set_parameters(op, t, h * w);
        op.group_level = s_.inner ? 2 : 3;
        op.reduction_mask = s_.inner ? 1 : 5;
        if (by_channel()) {
            op.lane_scale = op.par_zero_rows = true;
            op.zero_row_last = s_.head + static_cast<std::int32_t>(s_.head_slots()) * 3 - 1;
            op.zero_row_step = 3;
            op.zero_row_first = s_.head + 2;
            if (fixed_row_) {
                op.zero_row_first = *fixed_row_ + 2;
                op.zero_row_step = s_.groups == 1 ? 1 : fixed_rows();
                op.zero_row_last = op.zero_row_first +
                                   static_cast<std::int32_t>((s_.groups - 1) * s_.rows_of_group());
            }
        } else {
            op.par_zero = kind_.weight_zero;
        }
        return op;
    }

    void stream() const {
        const auto units = static_cast<std::int64_t>(layer_.bytes / spec::parameter_unit_bytes);
        ask_for_parameters(e_, layer_.first_unit * spec::parameter_unit_bytes,
                           static_cast<std::uint32_t>(layer_.bytes));
        program::Infeed infeed;
        infeed.source = spec::InfeedSource::parameters_;
        infeed.dst = fifo_pass(layer_.first_unit, units, spec::parameter_fifo_units,
                               spec::parameter_fifo_units / 2);
        infeed.infeed = signal_at(0);
        infeed.wait[0] = wait_for(scalar_counter::PARAMETER_INFEED_, 0,
                                  wrapped(layer_.first_unit - streamed_credit), 1);
        e_.code.scalar(infeed);
        program::RingPush push;
        push.fifo = spec::Fifo::parameters_;
        push.src = infeed.dst;
        push.pop = signal_at(0);
        push.wait[0] = wait_for(scalar_counter::PARAMETER_POP_, 0,
                                wrapped(std::int64_t{layer_.first_unit} + 1), 1);
        push.to_tiles = tiles_;
        push.message_words = s_.row_lanes;
        e_.code.scalar(push);
    }

    /// Rows of 16 bytes lie packed in wide rows: the scalar core unpacks them.
    void relay() const {
        const ParameterLayer::Piece& piece = layer_.pieces.front();
        const std::uint32_t rows = piece.count;
        program::RingPush push;
        push.fifo = spec::Fifo::relay_;
        push.src = fifo_pass(0, layer_.relay_units, relay_inner, relay_inner);
        push.producer = signal_at(1);
        push.pop = signal_at(0);
        push.wait[0] = wait_for(scalar_counter::RING_OUTFEED_, 0,
                                wrapped(std::int64_t{e_.relay_taken} + 1), 1);
        push.to_tiles = tiles_;
        push.message_words = 4;
        e_.code.scalar(push);
        program::RingPop pop;
        pop.dst = rotating(nest(3, 0, {{1, relay_inner}, {0, rows}}), 1, relay_inner);
        pop.outfeed = signal_at(0);
        pop.wait[0] = wait_for(scalar_counter::SCALAR_INFEED_, 0,
                               wrapped(std::int64_t{e_.relay_sent} - relay_credit), 1);
        pop.message_words = spec::row_bytes / 4;
        e_.code.scalar(pop);
        program::RingSend send;
        send.src = nest(4, static_cast<std::int32_t>(piece.row), {{1, 1}, {1, rows}});
        send.producer = signal_at(1);
        send.wait[0] =
            wait_for(counter::RING_PRODUCER_A_, 1, wrapped(std::int64_t{e_.messages_a} - 1), 1);
        send.wait[1] = wait_for(counter::RING_PRODUCER_B_, 1, e_.next_message_b(), 1);
        send.ring = program::Ring::b;
        send.to_scalar = true;
        e_.code.tile(static_cast<TileSet>(1U << piece.tile), send);
        e_.messages_a += rows;
        e_.messages_b += rows;
        e_.relay_taken += relay_inner * rows;
        e_.relay_sent += layer_.relay_units;
    }

    void send_pieces() const {
        for (const ParameterLayer::Piece& piece : layer_.pieces) {
            program::RingSend send;
            send.src = nest(4, static_cast<std::int32_t>(piece.row), {{1, piece.count}});
            if (piece.count == 1) send.src.mask = 0;
            send.producer = signal_at(0);
            send.wait[0] = wait_for(counter::RING_PRODUCER_B_, 1, e_.next_message_b(), 1);
            send.ring = program::Ring::b;
            send.to_tiles = tiles_;
            e_.code.tile(static_cast<TileSet>(1U << piece.tile), send);
            e_.messages_b += piece.count;
        }
    }

    Emission& e_;
    const Emission::Ahead before_;
    const ConvolutionStep& kind_;
    const ParameterLayer& layer_;
    LayerSchedule s_;
    const Tensor &in_, &out_;
    TileSet tiles_ = 0;
    std::int32_t first_channel_;             ///< of the result's, on a tile
    std::uint32_t channels_;                 ///< of the result, on a tile
    std::optional<std::int32_t> fixed_row_;  ///< where the rows of a spread layer begin
};

/// Each tile computes its own 64 channels of one pixel, or one of them up to 64: the vendor's form
/// of it.
void emit_pixel(Emission& e, const Step& step, const ConvolutionStep& kind) {
    const ParameterLayer& layer = e.plan.layers[kind.layer];
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    const auto tiles = static_cast<TileSet>(((1U << layer.share_tiles()) - 1) << layer.first_tile);
    const std::uint32_t words = in.words();
    const auto row = static_cast<std::int32_t>(layer.pieces.front().row);
    const bool by_channel = layer.schedule.head_rows == 3;
    program::WideToNarrow head;
    head.src = nest(4, row, {{1, by_channel ? 2U : 1U}});
    if (!by_channel) head.src.mask = 1;
    head.dst = rotating(nest(6, by_channel ? 0 : 64,
                             {{1, layer.schedule.row_lanes / 2}, {64, by_channel ? 2U : 1U}}),
                        2, 32);
    head.written = signal_at(2);
    head.wait[0] = room_for(counter::AVDATA_, 2, -1, 1);
    head.to_scaling = true;
    head.row_level = 1;
    e.code.tile(tiles, head);
    const auto by_tile = [&](unsigned t) {
        program::Tensor op;
        op.par_zero_set = op.acc_internal = op.bias = true;
        op.lanes = op.last_lanes = 4 * words_of_share(layer, out, t);
        apply(op, kind.scaling);
        if (by_channel) {
            op.lane_scale = op.par_zero_rows = true;
            op.zero_row_last = op.zero_row_first = row + 2;
            op.zero_row_step = 1;
        } else {
            op.par_zero = kind.weight_zero;
        }
        op.loops = loops({words});
        const auto all = static_cast<std::int32_t>(4 * words);
        op.in = nest(8, in.address(t, 0, 0), {{4, words}, {all, 1}, {all, 1}});
        op.out = nest(8, out.address(t, 0, 0) + step.first_channel,
                      {{4, op.lanes / 4}, {64, 1}, {64, 1}});
        op.par =
            nest(8, 4 * (row + static_cast<std::int32_t>(layer.schedule.head_rows)), {{4, words}});
        op.acc = nest(8, 0, {{0, words}});
        op.avdata = signal_at(2);
        op.parameters = signal_at(1);
        op.wait[0] = wait_for(counter::WIDE_TO_SCALING_, 1, 1, 1);
        op.group_level = 1;
        op.reduction_mask = 1;
        return std::optional(op);
    };
    e.code.by_class(by_tile, tiles);
}

bool is_of_pixel(const Emission& e, const Step& step, const ConvolutionStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    const Window& w = kind.window;
    return !kind.depthwise && in.height * in.width == 1 && out.height * out.width == 1 &&
           w.kernel_h * w.kernel_w == 1 && w.top == 0 && w.left == 0 &&
           e.plan.layers[kind.layer].share_groups == 1;
}

/// With rows that never move.
void emit_spread(Emission& e, const Step& step, const ConvolutionStep& kind) {
    if (is_of_pixel(e, step, kind)) return emit_pixel(e, step, kind);
    const ParameterLayer& layer = e.plan.layers[kind.layer];
    const Tensor& out = e.tensor(step.out);
    const unsigned begin = layer.first_tile, last = begin + layer.share_tiles() - 1;
    const bool even = begin == last ||
                      (out.words_on(last) == out.words() && out.all_channels % out.channels == 0);
    const unsigned full = even ? last + 1 : last;
    for (const auto& [first, end] : {std::pair{begin, full}, std::pair{full, last + 1}}) {
        if (first == end) continue;
        ConvolutionWriter writer(e, step, kind, {});
        writer.take_share(first, end);
        writer.compute();
    }
}

}  // namespace

void emit(Emission& e, const Step& step, const ConvolutionStep& kind) {
    if (e.plan.layers[kind.layer].spread) return emit_spread(e, step, kind);
    const auto ahead = std::exchange(e.ahead, std::nullopt);
    e.code.let_fly({});
    ConvolutionWriter writer(e, step, kind, ahead.value_or(Emission::Ahead{}));
    if (!ahead) writer.load();
    writer.compute();
}

void load(Emission& e, const Step& step, const ConvolutionStep& kind,
          const Emission::Ahead& before) {
    ConvolutionWriter(e, step, kind, before).load();
}

}  // namespace reef::edgetpu::lowering
