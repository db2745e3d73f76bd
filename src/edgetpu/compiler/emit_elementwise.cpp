// Sums, products, and copies through the identity matrix: other scales, limits, places, functions.
#include <algorithm>
#include <limits>

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t sum_row = top_row - 16;
constexpr std::int32_t combination_row = top_row - 16;
constexpr std::int32_t product_row = top_row - 8;

/// What a tile owns of a result, as loop counts and strides: of pixels of the result and of an
/// operand, which may have fewer channels.
struct Block {
    std::uint32_t h = 0, w = 0, words = 0;
    std::int32_t pixel = 0, from_pixel = 0;
    [[nodiscard]] std::uint32_t all() const { return h * w * words; }
};

std::int32_t pixel_of(const Tensor& t) {
    return static_cast<std::int32_t>(t.pixel_bytes());
}

std::optional<Block> block_of(const Tensor& out, const Tensor& operand, unsigned tile) {
    const Area own = out.own(tile);
    if (own.empty()) return std::nullopt;
    return Block{count(own.rows.size()), count(own.columns.size()), operand.words(), pixel_of(out),
                 pixel_of(operand)};
}

std::int32_t first_of(const Tensor& t, unsigned tile, const Tensor& owner) {
    const Area own = owner.own(tile);
    return t.address(tile, own.rows.begin, own.columns.begin);
}

std::int32_t pitch_of(const Tensor& t, unsigned tile) {
    return static_cast<std::int32_t>(t.pitch(tile));
}

/// Words of the zero point behind the channels that are copied.
std::optional<program::Mesh> fill_behind(const Tensor& in, const Tensor& out, unsigned t,
                                         const CopyStep& kind) {
    const auto b = block_of(out, out, t);
    if (!b) return std::nullopt;
    program::Mesh op;
    op.to = program::Direction::north;
    op.src = nest(4, 0, {});
    op.dst = nest(4, first_of(out, t, out) / 4 + static_cast<std::int32_t>(in.words()),
                  {{1, count(kind.filled_words)},
                   {static_cast<std::int32_t>(out.words()), b->w},
                   {pitch_of(out, t) / 4, b->h}});
    op.in = signal_at(3);
    op.fills = true;
    op.fill_value = static_cast<std::uint32_t>(in.zero) * 0x01010101U;
    return op;
}

/// A part of the output's channels, or of the input's, a word at a time.
std::optional<program::Tensor> copy_words(const Tensor& in, const Tensor& out, unsigned t,
                                          const CopyStep& kind, std::uint32_t words) {
    const Phase& phase = kind.phase;
    const Area own = phase.of(out.own(t));
    if (own.empty() || words == 0) return std::nullopt;
    const Window& win = kind.window;
    const std::uint32_t h = count(own.rows.size()), w = count(own.columns.size());
    const std::uint32_t all = h * w * words;
    program::Tensor op = word_copy();
    apply(op, kind.scaling);
    op.table = kind.function != Function::none;
    op.loops = loops({all});
    op.in = nest(8,
                 in.address(t, own.rows.begin * win.stride_h - win.top,
                            own.columns.begin * win.stride_w - win.left) +
                     kind.first_from_channel,
                 {{4, words},
                  {static_cast<std::int32_t>(in.pixel_bytes()) * win.stride_w, w},
                  {pitch_of(in, t) * win.stride_h, h}});
    op.out = nest(8,
                  out.address(t, own.rows.begin * phase.stride_h + phase.y,
                              own.columns.begin * phase.stride_w + phase.x) +
                      kind.first_channel,
                  {{4, words},
                   {static_cast<std::int32_t>(out.pixel_bytes()) * phase.stride_w, w},
                   {pitch_of(out, t) * phase.stride_h, h}});
    op.par = nest(8, 4 * identity_row, {{0, all}});
    op.acc = rotating(nest(8, 0, {{0, all}}), 0, 4);
    op.group_level = 1;
    op.avdata = signal_at(3);
    return op;
}

/// The bytes of a last word that count; the sums of the others are of nothing.
std::optional<program::Tensor> copy_bytes(const Tensor& in, const Tensor& out, unsigned t,
                                          const CopyStep& kind, std::uint32_t word) {
    const auto b = block_of(out, out, t);
    if (!b) return std::nullopt;
    const Window& win = kind.window;
    const Area own = out.own(t);
    const std::uint32_t bytes = count(kind.last_bytes);
    const auto skipped = static_cast<std::int32_t>(4 * word);
    program::Tensor op = word_copy();
    apply(op, kind.scaling);
    op.in_bytewise = op.single = op.single_par = true;
    op.loops = loops({bytes, b->w, b->h});
    op.in = nest(8,
                 in.address(t, own.rows.begin * win.stride_h - win.top,
                            own.columns.begin * win.stride_w - win.left) +
                     skipped,
                 {{1, bytes},
                  {static_cast<std::int32_t>(in.pixel_bytes()) * win.stride_w, b->w},
                  {pitch_of(in, t) * win.stride_h, b->h}});
    op.out = nest(8, first_of(out, t, out) + skipped,
                  {{4, 1}, {b->pixel, b->w}, {pitch_of(out, t), b->h}});
    op.par = nest(8, 4 * identity_row, {{1, bytes}, {0, b->w}, {0, b->h}});
    op.acc = rotating(nest(8, 0, {{0, bytes}, {0, b->w}, {0, b->h}}), 1, 4);
    op.group_level = 3;
    op.reduction_mask = 1;
    op.avdata = signal_at(3);
    return op;
}

/// x, and below zero x times a slope. Unused breaks of known tables are infinite.
program::Table bent_at_zero(float slope) {
    program::Table table;
    for (auto& segment : table.coefficients) segment = {0, 1, 0, 0, 0};
    table.coefficients[0][1] = slope;
    table.breaks.fill(std::numeric_limits<float>::infinity());
    table.breaks[0] = 0;
    return table;
}

/// In steps of the output: nothing below -3, x from 3 on, x (x + 3) / 6 between them.
program::Table hard_swish_in(float step) {
    program::Table table;
    for (auto& segment : table.coefficients) segment = {0, 1, 0, 0, 0};
    table.coefficients[0][1] = 0;
    table.coefficients[1] = {0, 0.5F, step / 6, 0, 0};
    table.breaks.fill(std::numeric_limits<float>::infinity());
    table.breaks[0] = -3 / step;
    table.breaks[1] = 3 / step;
    return table;
}

program::Table function_table(const CopyStep& step) {
    switch (step.function) {
        case Function::leaky_relu:
            return bent_at_zero(step.constant);
        case Function::hard_swish:
            return hard_swish_in(step.constant);
        default:
            return table_of(spec::sigmoid_256);
    }
}

}  // namespace

void emit(Emission& e, const Step& step, const CopyStep& kind) {
    const Tensor &in = e.tensor(step.in[0]), &out = e.tensor(step.out);
    if (kind.function != Function::none) {
        program::LoadTable load;
        load.table = function_table(kind);
        e.code.tile(every_tile, load);
    }
    if (kind.filled_words > 0)
        e.code.by_class([&](unsigned t) { return fill_behind(in, out, t, kind); });
    std::uint32_t words = std::min(in.words(), out.words());
    if (kind.last_bytes != 0) --words;
    e.code.by_class([&](unsigned t) { return copy_words(in, out, t, kind, words); });
    if (kind.last_bytes != 0)
        e.code.by_class([&](unsigned t) { return copy_bytes(in, out, t, kind, words); });
}

/// Both operands' words, each times its factor in two halves of 16 bits.
void emit(Emission& e, const Step& step, const SumStep& kind) {
    const Tensor &a = e.tensor(step.in[0]), &b = e.tensor(step.in[1]), &out = e.tensor(step.out);
    const std::uint32_t f = kind.factors.first, g = kind.factors.second;
    emit_constants(e, {f, f << 16U, 0, 0, 0, 0, f, f << 16U, g, g << 16U, 0, 0, 0, 0, g, g << 16U},
                   sum_row);
    e.code.by_class([&](unsigned t) -> std::optional<program::Tensor> {
        const auto block = block_of(out, a, t);
        if (!block) return std::nullopt;
        const auto [h, w, words, pixel, from_pixel] = *block;
        program::Tensor op = word_copy();
        apply(op, kind.scaling);
        op.par_16bit = true;
        op.initial = kind.initial;
        op.loops = loops({2, 2, w, h, words});
        const std::int32_t from = first_of(a, t, out), pitch = pitch_of(a, t);
        const std::int32_t plane = pitch * static_cast<std::int32_t>(h);
        op.in = nest(8, from,
                     {{2, 2},
                      {first_of(b, t, out) - from, 2},
                      {from_pixel, w},
                      {pitch, h},
                      {plane, 1},
                      {4, words}});
        const std::int32_t rows = pitch_of(out, t);
        op.out = nest(
            8, first_of(out, t, out) + step.first_channel,
            {{4, 1}, {pixel, w}, {rows, h}, {rows * static_cast<std::int32_t>(h), 1}, {4, words}});
        op.par = nest(8, 4 * sum_row, {{4, 4}, {0, block->all()}});
        op.acc = rotating(nest(8, 0, {{0, 4}, {0, block->all()}}), 1, 4);
        op.group_level = 4;
        op.reduction_mask = 3;
        op.avdata = signal_at(4);
        op.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 5, 1, 1);
        return op;
    });
}

namespace {

/// The identity times a factor, column by column, where the parameters have this zero point.
std::array<std::uint32_t, 4> scaled_identity(std::int32_t factor, std::int32_t zero) {
    std::array<std::uint32_t, 4> words{};
    for (unsigned lane = 0; lane < 4; ++lane)
        for (unsigned i = 0; i < 4; ++i)
            words[lane] |= count(i == lane ? factor + zero : zero) << 8 * i;
    return words;
}

}  // namespace

void emit(Emission& e, const Step& step, const CombinationStep& kind) {
    const Tensor &a = e.tensor(step.in[0]), &b = e.tensor(step.in[1]), &out = e.tensor(step.out);
    // One in the vendor's maximum.
    const std::int32_t zero = std::max({1, -kind.first, -kind.second});
    std::array<std::uint32_t, 16> rows{};
    std::ranges::copy(scaled_identity(kind.first, zero), rows.begin());
    std::ranges::copy(scaled_identity(kind.second, zero), rows.begin() + 4);
    emit_constants(e, rows, combination_row);
    e.code.by_class([&](unsigned t) -> std::optional<program::Tensor> {
        const auto block = block_of(out, a, t);
        if (!block) return std::nullopt;
        const auto [h, w, words, pixel, from_pixel] = *block;
        program::Tensor op = word_copy();
        apply(op, kind.scaling);
        op.par_zero = zero;
        op.loops = loops({2, w, h, words});
        const std::int32_t from = first_of(a, t, out);
        op.in = nest(
            8, from,
            {{first_of(b, t, out) - from, 2}, {from_pixel, w}, {pitch_of(a, t), h}, {4, words}});
        op.out = nest(8, first_of(out, t, out) + step.first_channel,
                      {{4, 1}, {pixel, w}, {pitch_of(out, t), h}, {4, words}});
        op.par = nest(8, 4 * combination_row, {{4, 2}, {0, block->all()}});
        op.acc = rotating(nest(8, 0, {{0, 2}, {0, block->all()}}), 1, 4);
        op.group_level = 4;
        op.reduction_mask = 1;
        op.avdata = signal_at(4);
        return op;
    });
}

namespace {

/// So many rows of a tile's part at once as the memory for all products holds.
struct ProductPart {
    Block block;
    std::int32_t y = 0, x = 0;
};

std::optional<ProductPart> product_part(Emission& e, const Step& step, unsigned t,
                                        std::int32_t piece) {
    const Tensor &a = e.tensor(step.in[0]), &out = e.tensor(step.out);
    const Area own = out.own(t);
    const std::int32_t rows = product_rows(out, a.words(), step.scratch->bytes);
    const std::int32_t y = own.rows.begin + piece * rows;
    if (own.empty() || y >= own.rows.end) return std::nullopt;
    return ProductPart{{count(std::min(rows, own.rows.end - y)), count(own.columns.size()),
                        a.words(), pixel_of(out), pixel_of(a)},
                       y,
                       own.columns.begin};
}

/// Each word of the first operand times a row that holds a word of the second: 4 x 4 products.
std::optional<program::Tensor> all_products(Emission& e, const Step& step, const ProductStep& kind,
                                            unsigned t, std::int32_t piece) {
    const Tensor& a = e.tensor(step.in[0]);
    const auto part = product_part(e, step, t, piece);
    if (!part) return std::nullopt;
    const auto& block = part->block;
    const auto [h, w, words, pixel, from_pixel] = block;
    const std::uint32_t all = block.all();
    program::Tensor op = word_copy();
    apply(op, kind.scaling);
    op.in_bytewise = op.single = op.single_par = true;
    op.par_zero = kind.second_zero;
    op.loops = loops({4, all});
    op.in = nest(8, a.address(t, part->y, part->x),
                 {{1, 4}, {4, words}, {from_pixel, w}, {pitch_of(a, t), h}});
    op.out = nest(8, static_cast<std::int32_t>(step.scratch->base), {{4, 1}, {4, 4}, {16, all}});
    op.par = rotating(nest(8, 4 * product_row, {{1, 4}, {0, all}}), 1, 4);
    op.acc = rotating(nest(8, 0, {{1, 1}, {0, 4}, {0, all}}), 1, 4);
    op.acc.mask = 0;
    op.group_level = 4;
    op.parameters = signal_at(1);
    op.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
    return op;
}

std::optional<program::NarrowToWide> second_as_rows(Emission& e, const Step& step, unsigned t,
                                                    std::int32_t piece) {
    const Tensor& b = e.tensor(step.in[1]);
    const auto part = product_part(e, step, t, piece);
    if (!part) return std::nullopt;
    const auto& block = part->block;
    program::NarrowToWide op;
    op.src = nest(6, b.address(t, part->y, part->x) / 4,
                  {{1, block.w * block.words}, {pitch_of(b, t) / 4, block.h}});
    op.dst = rotating(nest(4, product_row, {{0, block.all()}}), 0, 1);
    op.written = signal_at(0);
    op.wait[0] = room_for(counter::PARAMETERS_, 0, -1, 1);
    return op;
}

std::optional<program::Tensor> diagonals(Emission& e, const Step& step, unsigned t,
                                         std::int32_t piece) {
    const Tensor& out = e.tensor(step.out);
    const auto part = product_part(e, step, t, piece);
    if (!part) return std::nullopt;
    const auto& block = part->block;
    const auto [h, w, words, pixel, from_pixel] = block;
    const std::uint32_t all = block.all();
    program::Tensor op = word_copy();
    op.in_bytewise = op.single = op.single_par = true;
    op.loops = loops({4, all});
    op.in = nest(8, static_cast<std::int32_t>(step.scratch->base), {{4, 4}, {16, all}});
    op.out = nest(8, out.address(t, part->y, part->x) + step.first_channel,
                  {{4, words}, {pixel, w}, {pitch_of(out, t), h}});
    op.par = nest(8, 4 * identity_row, {{1, 4}, {0, all}});
    op.acc = rotating(nest(8, 0, {{0, 4}, {0, all}}), 1, 4);
    op.group_level = 2;
    op.reduction_mask = 1;
    op.avdata = signal_at(3);
    return op;
}

}  // namespace

void emit(Emission& e, const Step& step, const ProductStep& kind) {
    const Tensor& out = e.tensor(step.out);
    std::int32_t most = 0;
    for (const Span& s : out.own_rows) most = std::max(most, s.size());
    const std::int32_t rows = product_rows(out, e.tensor(step.in[0]).words(), step.scratch->bytes);
    for (std::int32_t piece = 0; piece * rows < most; ++piece) {
        if (piece != 0) e.code.full_stop();
        e.code.by_class([&](unsigned t) { return all_products(e, step, kind, t, piece); });
        e.code.by_class([&](unsigned t) { return second_as_rows(e, step, t, piece); });
        e.code.full_stop();
        e.code.by_class([&](unsigned t) { return diagonals(e, step, t, piece); });
    }
}

}  // namespace reef::edgetpu::lowering
