// Pools and enlarging.
#include <algorithm>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t blend_row = top_row - 16;

std::int32_t pitch_in(const Tensor& t, unsigned tile) {
    return static_cast<std::int32_t>(t.pitch(tile));
}

std::int32_t pixel_of(const Tensor& t) {
    return static_cast<std::int32_t>(t.pixel_bytes());
}

/// Pixels of one parity of an area, for copies to twice the height and width.
struct PixelPhase {
    std::int32_t y = 0, x = 0;  ///< the first
    std::uint32_t h = 0, w = 0;
};

std::optional<PixelPhase> phase_of(const Tensor& out, unsigned tile, std::int32_t py,
                                   std::int32_t px) {
    const Area own = out.own(tile);
    if (own.empty()) return std::nullopt;
    const std::int32_t y = own.rows.begin + ((own.rows.begin ^ py) & 1);
    const std::int32_t x = own.columns.begin + ((own.columns.begin ^ px) & 1);
    if (y >= own.rows.end || x >= own.columns.end) return std::nullopt;
    return PixelPhase{y, x, count((own.rows.end - y + 1) / 2),
                      count((own.columns.end - x + 1) / 2)};
}

LoopNest every_second(const Tensor& out, unsigned tile, const PixelPhase& p, bool word_by_word) {
    const std::int32_t at = out.address(tile, p.y, p.x);
    const Dimension x{2 * pixel_of(out), p.w}, y{2 * pitch_in(out, tile), p.h};
    if (word_by_word) return nest(8, at, {{4, 1}, x, y, {4, out.words()}});
    return nest(8, at, {{4, out.words()}, x, y});
}

std::optional<program::Tensor> nearest(const Tensor& in, const Tensor& out, unsigned tile,
                                       std::int32_t py, std::int32_t px) {
    const auto p = phase_of(out, tile, py, px);
    if (!p) return std::nullopt;
    const std::uint32_t all = in.words() * p->w * p->h;
    program::Tensor op = word_copy();
    op.loops = loops({all});
    op.in = nest(8, in.address(tile, p->y / 2, p->x / 2),
                 {{4, in.words()}, {pixel_of(in), p->w}, {pitch_in(in, tile), p->h}});
    op.out = every_second(out, tile, *p, false);
    op.par = nest(8, 4 * identity_row, {{0, all}});
    op.acc = rotating(nest(8, 0, {{0, all}}), 0, 4);
    op.group_level = 1;
    op.avdata = signal_at(3);
    return op;
}

/// The order in which one of the four phases visits the rows with 9, 3, 3 and 1 times the identity.
struct Blend {
    std::int32_t py, px;
    std::int32_t first, step_x, step_y;  ///< rows
};
constexpr Blend blends[] = {{0, 0, 3, -1, -2}, {1, 1, 0, 1, 2}, {0, 1, 1, 2, -1}, {1, 0, 2, -2, 1}};

std::optional<program::Tensor> bilinear(const Tensor& in, const Tensor& out, unsigned tile,
                                        const Blend& blend) {
    const auto p = phase_of(out, tile, blend.py, blend.px);
    if (!p) return std::nullopt;
    const std::int32_t y = p->y / 2 - (1 - blend.py), x = p->x / 2 - (1 - blend.px);
    const std::uint32_t all = p->w * p->h * in.words();
    const std::int32_t pixel = pixel_of(in), pitch = pitch_in(in, tile);
    program::Tensor op = word_copy();
    op.scale = 1.0F / 16;
    op.loops = loops({2, 2, p->w, p->h, in.words()});
    op.in = nest(8, in.address(tile, y, x),
                 {{pixel, 2}, {pitch, 2}, {pixel, p->w}, {pitch, p->h}, {4, in.words()}});
    op.out = every_second(out, tile, *p, true);
    op.par = nest(8, 4 * (blend_row + blend.first),
                  {{4 * blend.step_x, 2}, {4 * blend.step_y, 2}, {0, all}});
    op.acc = rotating(nest(8, 0, {{0, 4}, {0, all}}), 1, 4);
    op.group_level = 4;
    op.reduction_mask = 3;
    op.avdata = signal_at(4);
    return op;
}

std::optional<program::Tensor> average(const Tensor& in, const Tensor& out, unsigned tile,
                                       const AverageStep& kind) {
    const Area own = out.own(tile);
    if (own.empty()) return std::nullopt;
    const auto h = count(own.rows.size()), w = count(own.columns.size()), words = in.words();
    const Window& win = kind.window;
    const auto kh = count(win.kernel_h), kw = count(win.kernel_w);
    const std::int32_t pixel = pixel_of(in), pitch = pitch_in(in, tile);
    program::Tensor op = word_copy();
    apply(op, kind.scaling);
    op.loops = loops({kw, kh, w, h, words});
    op.in =
        nest(8, in.address(tile, own.rows.begin * win.stride_h, own.columns.begin * win.stride_w),
             {{pixel, kw},
              {pitch, kh},
              {pixel * win.stride_w, w},
              {pitch * win.stride_h, h},
              {4, words}});
    op.out = nest(8, out.address(tile, own.rows.begin, own.columns.begin),
                  {{4, 1}, {pixel, w}, {pitch_in(out, tile), h}, {4, words}});
    op.par = nest(8, 4 * identity_row, {{0, kh * kw}, {0, w * h * words}});
    op.acc = rotating(nest(8, 0, {{0, kh * kw}, {0, w * h * words}}), 1, 4);
    op.group_level = 4;
    op.reduction_mask = 3;
    op.avdata = signal_at(4);
    return op;
}

/// So many rows of four pixels hold a window of the input in wide memory.
struct PixelRows {
    std::uint32_t rows = 0, blocks = 0;
};

PixelRows pixel_rows(const Tensor& in, unsigned tile) {
    const Area w = in.window(tile);
    return {count(w.rows.size()), count((w.columns.size() + 3) / 4)};
}

std::optional<program::NarrowToWide> pixels_as_rows(const Tensor& in, const Tensor& out,
                                                    unsigned tile, std::int32_t row,
                                                    std::uint32_t group, std::uint32_t words) {
    if (out.own(tile).empty()) return std::nullopt;
    const auto [rows, blocks] = pixel_rows(in, tile);
    const Area w = in.window(tile);
    const auto all = static_cast<std::int32_t>(in.words());
    program::NarrowToWide op;
    op.src = nest(
        6,
        in.address(tile, w.rows.begin, w.columns.begin) / 4 + static_cast<std::int32_t>(16 * group),
        {{all, 4}, {1, words}, {4 * all, blocks}, {pitch_in(in, tile) / 4, rows}});
    op.src.crop_dimension = 1;
    op.dst = nest(4, row, {{1, rows * blocks}});
    op.written = signal_at(1);
    op.format = spec::RowFormat::transpose_bytes_;
    op.row_level = 2;
    return op;
}

std::optional<program::Tensor> maximum(const Tensor& in, const Tensor& out, unsigned tile,
                                       const MaxStep& kind, std::int32_t row, std::uint32_t group,
                                       std::uint32_t words) {
    const Area own = out.own(tile), window = in.window(tile);
    if (own.empty()) return std::nullopt;
    const auto h = count(own.rows.size()), w = count(own.columns.size());
    const Window& win = kind.window;
    const auto kh = count(win.kernel_h), kw = count(win.kernel_w);
    const auto line = static_cast<std::int32_t>(4 * pixel_rows(in, tile).blocks);
    program::Tensor op = word_copy();
    op.kind = program::TensorKind::max;
    apply(op, kind.scaling);
    op.initial = -kind.scaling.in_zero;
    op.in_bytewise = op.single = op.single_par = true;
    op.lanes = op.last_lanes = 4 * words;
    op.loops = loops({kw, kh, w, h});
    op.in = nest(8, 0, {});
    op.out = nest(8,
                  out.address(tile, own.rows.begin, own.columns.begin) +
                      static_cast<std::int32_t>(64 * group),
                  {{4, words}, {pixel_of(out), w}, {pitch_in(out, tile), h}});
    const std::int32_t first =
        4 * row + (own.rows.begin * win.stride_h - win.top - window.rows.begin) * line +
        (own.columns.begin * win.stride_w - win.left - window.columns.begin);
    op.par = nest(8, first, {{1, kw}, {line, kh}, {win.stride_w, w}, {line * win.stride_h, h}});
    op.acc = rotating(nest(8, 0, {{0, kw}, {0, kh}, {0, w}, {0, h}}), 2, 4);
    op.group_level = 4;
    op.reduction_mask = 3;
    op.avdata = signal_at(3);
    op.parameters = signal_at(4);
    return op;
}

/// Maxima lay their input out as rows of wide memory, above the parameters; what an LSTM reads
/// again and again is copied there.
Status check_rows(const Plan& plan, const Step& step) {
    if (step.in.empty()) return {};
    const Tensor& in = plan.tensors[step.in[0]];
    std::int32_t rows = 0;
    if (std::holds_alternative<SoftmaxStep>(step.kind))
        rows = static_cast<std::int32_t>(softmax_room(in).rows);
    else if (const auto* lstm = std::get_if<LstmStep>(&step.kind))
        rows = static_cast<std::int32_t>(plan.layers[lstm->layer].row_count());
    else if (!std::holds_alternative<MaxStep>(step.kind))
        return {};
    for (unsigned t = 0; t < all_tiles && std::holds_alternative<MaxStep>(step.kind); ++t) {
        const Area w = in.window(t);
        rows = std::max(rows, w.rows.size() * ((w.columns.size() + 3) / 4));
    }
    const auto used = plan.first_free_row();
    if (used + rows <= identity_row - 16) return {};
    return fail(Cause::unsupported, "what it lays out as rows does not fit beside the parameters",
                place_of(plan, step));
}

}  // namespace

void emit(Emission& e, const Step& step, const AverageStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    e.code.by_class([&](unsigned t) { return average(in, out, t, kind); });
}

namespace {

/// Bytes from one pixel to the next, and from one row to the next.
struct Strides {
    std::int32_t pixel = 0, row = 0;
};
/// Of an image that lies together, so many words of each pixel.
program::Tensor average_of_all(const Tensor& in, std::int32_t from, const Strides& strides,
                               std::int32_t to, std::uint32_t words,
                               const GlobalAverageStep& kind) {
    const std::uint32_t n = count(in.height * in.width);
    program::Tensor op = word_copy();
    apply(op, kind.scaling);
    op.loops = loops({count(in.width), count(in.height), words});
    op.in = nest(8, from,
                 {{strides.pixel, count(in.width)}, {strides.row, count(in.height)}, {4, words}});
    op.out = nest(8, to, {{4, 1}, {4, words}});
    op.par = nest(8, 4 * identity_row, {{0, n}, {0, words}});
    op.acc = rotating(nest(8, 0, {{0, n}, {0, words}}), 1, 4);
    op.group_level = 2;
    op.reduction_mask = 3;
    op.avdata = signal_at(2);
    return op;
}

}  // namespace

void emit(Emission& e, const Step& step, const GlobalAverageStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    if (in.layout == Layout::channels) {
        const auto tiles = static_cast<TileSet>((1U << in.spread_tiles) - 1);
        e.code.by_class(
            [&](unsigned t) {
                return std::optional(average_of_all(in, in.address(t, 0, 0),
                                                    {pixel_of(in), pitch_in(in, t)},
                                                    out.address(t, 0, 0), in.words_on(t), kind));
            },
            tiles);
        return;
    }
    const std::uint32_t most = words_averaged_at_once(in);
    for (PixelWords part{0, most}; part.first < in.words(); part.first += most) {
        if (part.first != 0) e.code.full_stop();
        part.count = std::min(most, in.words() - part.first);
        emit_gather(e, in, 1, step.scratch->base, part);
        const auto pixel = static_cast<std::int32_t>(4 * part.count);
        e.code.tile(1,
                    average_of_all(in, static_cast<std::int32_t>(step.scratch->base),
                                   {pixel, in.width * pixel},
                                   out.address(0, 0, 0) + static_cast<std::int32_t>(4 * part.first),
                                   part.count, kind));
    }
}

void emit(Emission& e, const Step& step, const EnlargeStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    if (kind.nearest) {
        for (const std::int32_t py : {0, 1})
            for (const std::int32_t px : {0, 1})
                e.code.by_class([&](unsigned t) { return nearest(in, out, t, py, px); });
        return;
    }
    std::array<std::uint32_t, 16> words{};
    constexpr std::uint32_t weights[] = {9, 3, 3, 1};
    for (unsigned w = 0; w < 4; ++w)
        for (unsigned i = 0; i < 4; ++i) words[4 * w + i] = weights[w] << 8 * i;
    emit_constants(e, words, blend_row);
    for (const Blend& blend : blends)
        e.code.by_class([&](unsigned t) { return bilinear(in, out, t, blend); });
}

void emit(Emission& e, const Step& step, const MaxStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    e.code.by_class([&](unsigned t) {
        const Area w = in.window(t);
        const std::int32_t end =
            static_cast<std::int32_t>(in.base) + w.rows.size() * pitch_in(in, t);
        program::Mesh fill;
        fill.to = program::Direction::north;
        fill.src = nest(4, 0, {});
        fill.dst = nest(4, end / 4, {{1, in.slack / 4}});
        fill.in = signal_at(1);
        fill.fills = true;
        return std::optional(fill);
    });
    e.code.fence();
    const auto row = e.plan.first_free_row();
    for (std::uint32_t group = 0; group * 16 < in.words(); ++group) {
        const std::uint32_t words = std::min(16U, in.words() - 16 * group);
        e.code.by_class([&](unsigned t) { return pixels_as_rows(in, out, t, row, group, words); });
        e.code.fence();
        e.code.by_class([&](unsigned t) { return maximum(in, out, t, kind, row, group, words); });
        e.code.fence();
    }
}

Status check_emittable(const Plan& plan) {
    for (const Step& step : plan.steps) REEF_CHECK(check_rows(plan, step));
    return {};
}

}  // namespace reef::edgetpu::lowering
