// Operators that put elements around a tensor, or around and between the pixels of a batch.
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/plain/operator_case.h"

namespace reef::plain {
namespace {

using model::Op;

/// Elements before and after each dimension.
using Border = std::vector<std::pair<std::int32_t, std::int32_t>>;

Values constant_border(const Border& border) {
    Values values = numbers({});
    values.shape = {static_cast<std::int32_t>(border.size()), 2};
    for (const auto& [before, after] : border) {
        values.stored.push_back(before);
        values.stored.push_back(after);
    }
    return values;
}

Shape with_border(Shape shape, const Border& border) {
    for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += border[d].first + border[d].second;
    return shape;
}

OperatorCase make_padv2(Choices& c) {
    const Values in =
        random_values(c, c.one_of({u8, i8, i16, i32, i64, f32}), c.shape_or_empty(1, 6, 3));
    Border border;
    for (std::size_t d = 0; d < in.shape.size(); ++d)
        border.emplace_back(c.pick(0, 2), c.pick(0, 2));
    Values value = random_values(c, in.type, {}, c.one_in(2) ? Role::constant : Role::input);
    value.scales = in.scales;
    value.zero = in.zero;
    Expected out = stored_like(in, with_border(in.shape, border));
    each_index(out.shape, [&](Shape index, std::size_t at) {
        bool inside = true;
        for (std::size_t d = 0; d < index.size(); ++d) {
            index[d] -= border[d].first;
            inside = inside && index[d] >= 0 && index[d] < in.shape[d];
        }
        out.real[at] = inside ? in.stored[flat_index(in.shape, index)] : value.stored[0];
    });
    return {.op = Op::padv2, .inputs = {in, constant_border(border), value}, .outputs = {out}};
}

/// The elements around are walked one by one: away from the edge, and at the edge itself first
/// where it is repeated.
std::int32_t mirrored(std::int32_t index, std::int32_t length, bool repeats) {
    std::int32_t place = index < 0 ? 0 : length - 1;
    const std::int32_t step = index < 0 ? 1 : -1;
    std::int32_t steps = index < 0 ? -index : index - (length - 1);
    if (repeats) --steps;
    for (; steps > 0; --steps) place += step;
    return place;
}

OperatorCase make_mirror_pad(Choices& c) {
    const Values in =
        random_values(c, c.one_of({u8, i8, i16, i32, i64, f32}), c.shape_or_empty(1, 6, 3));
    const bool repeats = c.one_in(2);
    Border border;
    for (const std::int32_t length : in.shape) {
        const std::int32_t most = c.one_in(3) || length == 0 ? 0 : length - (repeats ? 0 : 1);
        border.emplace_back(c.pick(0, most), c.pick(0, most));
    }
    Expected out = stored_like(in, with_border(in.shape, border));
    each_index(out.shape, [&](Shape index, std::size_t at) {
        for (std::size_t d = 0; d < index.size(); ++d) {
            index[d] -= border[d].first;
            if (index[d] < 0 || index[d] >= in.shape[d])
                index[d] = mirrored(index[d], in.shape[d], repeats);
        }
        out.real[at] = in.stored[flat_index(in.shape, index)];
    });
    return {.op = Op::mirror_pad,
            .options = model::MirrorPadOptions{repeats ? model::Mirror::symmetric
                                                       : model::Mirror::reflect},
            .inputs = {in, constant_border(border)},
            .outputs = {out}};
}

/// A batch of images and the same as blocks: each pixel of an image has its place in the batch.
struct BatchOfBlocks {
    Shape images, blocks;
    std::vector<std::int32_t> sides;
    Border border;

    /// Where the image's pixel stands among the blocks; nothing outside of the image.
    [[nodiscard]] std::optional<Shape> image_index(const Shape& block) const {
        Shape index = block;
        std::int32_t place = block[0] / images[0];
        index[0] = block[0] % images[0];
        for (std::size_t i = sides.size(); i-- > 0;) {
            index[i + 1] = block[i + 1] * sides[i] + place % sides[i] - border[i].first;
            place /= sides[i];
            if (index[i + 1] < 0 || index[i + 1] >= images[i + 1]) return {};
        }
        return index;
    }
};

BatchOfBlocks random_blocks(Choices& c) {
    BatchOfBlocks all;
    const auto dimensions = static_cast<std::size_t>(c.pick(1, 2));
    all.images = {c.one_in(16) ? 0 : c.pick(1, 2)};
    all.blocks = all.images;
    for (std::size_t i = 0; i < dimensions; ++i) {
        const std::int32_t side = all.sides.emplace_back(c.pick(1, 3));
        const std::int32_t count = c.pick(1, 4);
        const std::int32_t before = c.pick(0, side * count - 1);
        const std::int32_t after = c.pick(0, side * count - 1 - before);
        all.border.emplace_back(before, after);
        all.images.push_back(side * count - before - after);
        all.blocks.push_back(count);
        all.blocks[0] *= side;
    }
    const std::int32_t depth = c.one_in(16) ? 0 : c.pick(1, 4);
    all.images.push_back(depth);
    all.blocks.push_back(depth);
    return all;
}

OperatorCase make_space_to_batch_nd(Choices& c) {
    const BatchOfBlocks all = random_blocks(c);
    const Values in = random_values(c, c.one_of({u8, i8, i16, i32, i64, f32}), all.images);
    Expected out = stored_like(in, all.blocks);
    each_index(out.shape, [&](const Shape& index, std::size_t at) {
        const auto from = all.image_index(index);
        out.real[at] = from ? in.stored[flat_index(in.shape, *from)] : static_cast<double>(in.zero);
    });
    return {.op = Op::space_to_batch_nd,
            .inputs = {in, numbers(all.sides), constant_border(all.border)},
            .outputs = {out}};
}

OperatorCase make_batch_to_space_nd(Choices& c) {
    const BatchOfBlocks all = random_blocks(c);
    const Values in = random_values(c, c.one_of({u8, i8, i16, i32, i64, f32}), all.blocks);
    Expected out = stored_like(in, all.images);
    each_index(in.shape, [&](const Shape& index, std::size_t at) {
        if (const auto to = all.image_index(index))
            out.real[flat_index(out.shape, *to)] = in.stored[at];
    });
    return {.op = Op::batch_to_space_nd,
            .inputs = {in, numbers(all.sides), constant_border(all.border)},
            .outputs = {out}};
}

constexpr auto border_table = std::to_array<NamedMaker>({
    {Op::padv2, make_padv2},
    {Op::mirror_pad, make_mirror_pad},
    {Op::space_to_batch_nd, make_space_to_batch_nd},
    {Op::batch_to_space_nd, make_batch_to_space_nd},
});

}  // namespace

std::span<const NamedMaker> border_makers() {
    return border_table;
}

}  // namespace reef::plain
