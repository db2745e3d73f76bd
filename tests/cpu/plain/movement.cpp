// Operators that only move elements: where each output element comes from.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "cpu/plain/operator_case.h"

namespace reef::plain {
namespace {

using model::Op;

ElementType any_type(Choices& c) {
    return c.one_of({u8, i8, ElementType::int16, i32, ElementType::int64, f32});
}

Values any_input(Choices& c, Shape shape) {
    return random_values(c, any_type(c), std::move(shape));
}

/// An output of `shape` whose element at an index is input 0's at `source(index)`.
template <typename Source>
Expected moved(const Values& in, const Shape& shape, const Source& source) {
    Expected out = stored_like(in, shape);
    each_index(shape, [&](const Shape& index, std::size_t at) {
        out.real[at] = in.stored[flat_index(in.shape, source(index))];
    });
    return out;
}

Expected same_elements(const Values& in, Shape shape) {
    Expected out = stored_like(in, std::move(shape));
    out.real = in.stored;
    return out;
}

OperatorCase make_reshape(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 4));
    Shape shape;
    auto left = static_cast<std::int32_t>(in.stored.size());
    for (const std::int32_t factor : {2, 3})
        if (left % factor == 0 && c.one_in(2)) {
            shape.push_back(factor);
            left /= factor;
        }
    shape.push_back(left);
    Shape asked = shape;
    asked[static_cast<std::size_t>(c.pick(0, static_cast<std::int32_t>(shape.size()) - 1))] = -1;
    OperatorCase one{.op = Op::reshape, .outputs = {same_elements(in, shape)}};
    one.inputs = {in};
    if (c.one_in(2))
        one.inputs.push_back(numbers(asked));
    else
        one.options = model::ReshapeOptions{asked};
    return one;
}

OperatorCase make_squeeze(Choices& c) {
    Shape shape = c.shape(2, 4, 3);
    shape[0] = 1;
    const Values in = any_input(c, shape);
    const bool named = c.one_in(2);
    Shape left;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (named ? d != 0 : shape[d] != 1) left.push_back(shape[d]);
    return {.op = Op::squeeze,
            .options = model::SqueezeOptions{named ? std::vector<std::int32_t>{0}
                                                   : std::vector<std::int32_t>{}},
            .inputs = {in},
            .outputs = {same_elements(in, left)}};
}

OperatorCase make_expand_dims(Choices& c) {
    const Values in = any_input(c, c.shape(1, 3, 4));
    const auto rank = static_cast<std::int32_t>(in.shape.size());
    const std::int32_t axis = c.pick(-rank - 1, rank);
    Shape shape = in.shape;
    shape.insert(shape.begin() + (axis < 0 ? axis + rank + 1 : axis), 1);
    return {.op = Op::expand_dims,
            .inputs = {in, numbers({axis})},
            .outputs = {same_elements(in, shape)}};
}

OperatorCase make_shape(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 5));
    const ElementType type = c.one_of({i32, ElementType::int64});
    Expected out{.type = type,
                 .shape = {static_cast<std::int32_t>(in.shape.size())},
                 .real = {in.shape.begin(), in.shape.end()}};
    return {
        .op = Op::shape, .options = model::ShapeOptions{type}, .inputs = {in}, .outputs = {out}};
}

OperatorCase make_transpose(Choices& c) {
    const Values in = any_input(c, c.shape(1, 5, 4));
    std::vector<std::int32_t> order(in.shape.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i-- > 1;)
        std::swap(order[i],
                  order[static_cast<std::size_t>(c.pick(0, static_cast<std::int32_t>(i)))]);
    Shape shape;
    for (const auto axis : order) shape.push_back(in.shape[static_cast<std::size_t>(axis)]);
    const auto source = [&](const Shape& index) {
        Shape from(index.size());
        for (std::size_t d = 0; d < order.size(); ++d)
            from[static_cast<std::size_t>(order[d])] = index[d];
        return from;
    };
    return {
        .op = Op::transpose, .inputs = {in, numbers(order)}, .outputs = {moved(in, shape, source)}};
}

OperatorCase make_pad(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 4));
    Values paddings = numbers({});
    paddings.shape = {static_cast<std::int32_t>(in.shape.size()), 2};
    Shape shape = in.shape;
    for (std::int32_t& length : shape) {
        const std::int32_t before = c.pick(0, 2);
        const std::int32_t after = c.pick(0, 2);
        paddings.stored.insert(paddings.stored.end(),
                               {static_cast<double>(before), static_cast<double>(after)});
        length += before + after;
    }
    Expected out = stored_like(in, shape);
    each_index(shape, [&](const Shape& index, std::size_t at) {
        Shape from = index;
        bool inside = true;
        for (std::size_t d = 0; d < from.size(); ++d) {
            from[d] -= static_cast<std::int32_t>(paddings.stored[2 * d]);
            inside = inside && from[d] >= 0 && from[d] < in.shape[d];
        }
        out.real[at] =
            inside ? in.stored[flat_index(in.shape, from)] : static_cast<double>(in.zero);
    });
    return {.op = Op::pad, .inputs = {in, paddings}, .outputs = {out}};
}

/// One dimension of a strided slice as Python writes it.
struct Range {
    std::int32_t begin = 0, end = 0, stride = 1;
    bool whole_begin = false, whole_end = false, one = false;
    [[nodiscard]] std::vector<std::int32_t> positions(std::int32_t length) const {
        const auto at = [&](std::int32_t x) { return x < 0 ? x + length : x; };
        if (one) return {at(begin)};
        const std::int32_t low = stride > 0 ? 0 : -1;
        const std::int32_t high = stride > 0 ? length : length - 1;
        const std::int32_t first =
            whole_begin ? (stride > 0 ? 0 : length - 1) : std::clamp(at(begin), low, high);
        const std::int32_t last =
            whole_end ? (stride > 0 ? length : -1) : std::clamp(at(end), low, high);
        std::vector<std::int32_t> result;
        for (std::int32_t p = first; stride > 0 ? p < last : p > last; p += stride)
            result.push_back(p);
        return result;
    }
};

Range random_range(Choices& c, std::int32_t length) {
    Range range{.begin = c.pick(-length, length - 1),
                .stride = c.one_of({1, 1, 2, 3, -1, -2}),
                .whole_begin = c.one_in(4),
                .whole_end = c.one_in(3),
                .one = c.one_in(6)};
    range.end = c.pick(-length - 1, length + 1);
    // A slice of nothing is refused elsewhere: at least one element stays.
    if (range.positions(length).empty()) range = {.whole_begin = true, .whole_end = true};
    return range;
}

OperatorCase make_strided_slice(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 5));
    std::vector<std::int32_t> begins, ends, strides;
    std::vector<std::vector<std::int32_t>> positions;
    model::StridedSliceOptions options;
    Shape shape, whole;
    for (std::size_t d = 0; d < in.shape.size(); ++d) {
        const Range range = random_range(c, in.shape[d]);
        begins.push_back(range.begin);
        ends.push_back(range.one ? range.begin + 1 : range.end);
        strides.push_back(range.one ? 1 : range.stride);
        const auto bit = static_cast<std::int32_t>(1U << d);
        if (range.one) options.shrink_axis_mask |= bit;
        if (range.whole_begin && !range.one) options.begin_mask |= bit;
        if (range.whole_end && !range.one) options.end_mask |= bit;
        positions.push_back(range.positions(in.shape[d]));
        whole.push_back(static_cast<std::int32_t>(positions.back().size()));
        if (!range.one) shape.push_back(whole.back());
    }
    Expected out = moved(in, whole, [&](const Shape& index) {
        Shape from(index.size());
        for (std::size_t d = 0; d < index.size(); ++d)
            from[d] = positions[d][static_cast<std::size_t>(index[d])];
        return from;
    });
    out.shape = shape;
    return {.op = Op::strided_slice,
            .options = options,
            .inputs = {in, numbers(begins), numbers(ends), numbers(strides)},
            .outputs = {out}};
}

OperatorCase make_slice(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 5));
    std::vector<std::int32_t> begins, sizes;
    Shape shape;
    for (const std::int32_t length : in.shape) {
        begins.push_back(c.pick(0, length - 1));
        const bool rest = c.one_in(3);
        shape.push_back(rest ? length - begins.back() : c.pick(1, length - begins.back()));
        sizes.push_back(rest ? -1 : shape.back());
    }
    const auto source = [&](Shape index) {
        for (std::size_t d = 0; d < index.size(); ++d) index[d] += begins[d];
        return index;
    };
    return {.op = Op::slice,
            .inputs = {in, numbers(begins), numbers(sizes)},
            .outputs = {moved(in, shape, source)}};
}

OperatorCase make_tile(Choices& c) {
    const Values in = any_input(c, c.shape(1, 4, 3));
    std::vector<std::int32_t> multiples;
    Shape shape = in.shape;
    for (std::int32_t& length : shape) length *= multiples.emplace_back(c.pick(1, 3));
    const auto source = [&](Shape index) {
        for (std::size_t d = 0; d < index.size(); ++d) index[d] %= in.shape[d];
        return index;
    };
    return {
        .op = Op::tile, .inputs = {in, numbers(multiples)}, .outputs = {moved(in, shape, source)}};
}

OperatorCase make_concatenation(Choices& c) {
    const ElementType type = any_type(c);
    Shape shape = c.shape(1, 4, 4);
    const auto rank = static_cast<std::int32_t>(shape.size());
    const std::int32_t axis = c.pick(-rank, rank - 1);
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    OperatorCase one{.op = Op::concatenation, .options = model::ConcatenationOptions{.axis = axis}};
    shape[along] = 0;
    std::vector<std::pair<std::size_t, std::int32_t>> sources;  // input and place, along the axis
    for (std::int32_t i = c.pick(1, 4); i > 0; --i) {
        Shape part = shape;
        part[along] = c.pick(1, 4);
        Values in = random_values(c, type, part);
        // Other types than uint8 share one quantisation.
        if (type != u8 && !one.inputs.empty()) {
            in.scales = one.inputs[0].scales;
            in.zero = one.inputs[0].zero;
        }
        for (std::int32_t p = 0; p < part[along]; ++p) sources.emplace_back(one.inputs.size(), p);
        one.inputs.push_back(std::move(in));
    }
    shape[along] = static_cast<std::int32_t>(sources.size());
    Expected out = stored_like(one.inputs[0], shape);
    each_index(shape, [&](Shape index, std::size_t at) {
        const auto [input, place] = sources[static_cast<std::size_t>(index[along])];
        index[along] = place;
        const Values& in = one.inputs[input];
        const std::size_t from = flat_index(in.shape, index);
        out.real[at] = type == u8 ? in.real(from) : in.stored[from];
    });
    if (type == u8) choose_quantisation(c, out, 0.51);
    one.outputs = {out};
    return one;
}

/// The part of `in` that begins at `first` along an axis and is `length` long.
Expected part_along(const Values& in, std::size_t axis, std::int32_t first, std::int32_t length) {
    Shape shape = in.shape;
    shape[axis] = length;
    return moved(in, shape, [&](Shape index) {
        index[axis] += first;
        return index;
    });
}

OperatorCase make_split(Choices& c) {
    Shape shape = c.shape(1, 4, 3);
    const auto axis =
        static_cast<std::size_t>(c.pick(0, static_cast<std::int32_t>(shape.size()) - 1));
    const std::int32_t parts = c.pick(1, 3);
    const std::int32_t length = shape[axis];
    shape[axis] *= parts;
    const Values in = any_input(c, shape);
    OperatorCase one{.op = Op::split, .options = model::SplitOptions{parts}};
    one.inputs = {numbers({static_cast<std::int32_t>(axis)}), in};
    one.inputs[0].shape = {};
    for (std::int32_t i = 0; i < parts; ++i)
        one.outputs.push_back(part_along(in, axis, i * length, length));
    return one;
}

OperatorCase make_split_v(Choices& c) {
    Shape shape = c.shape(1, 4, 3);
    const auto axis =
        static_cast<std::size_t>(c.pick(0, static_cast<std::int32_t>(shape.size()) - 1));
    std::vector<std::int32_t> lengths;
    for (std::int32_t i = c.pick(1, 3); i > 0; --i) lengths.push_back(c.pick(1, 3));
    shape[axis] = std::accumulate(lengths.begin(), lengths.end(), 0);
    const Values in = any_input(c, shape);
    OperatorCase one{.op = Op::split_v,
                     .options = model::SplitVOptions{static_cast<std::int32_t>(lengths.size())}};
    std::int32_t first = 0;
    for (const std::int32_t length : lengths) {
        one.outputs.push_back(part_along(in, axis, first, length));
        first += length;
    }
    if (c.one_in(2)) lengths[0] = -1;
    one.inputs = {in, numbers(lengths), numbers({static_cast<std::int32_t>(axis)})};
    one.inputs[2].shape = {};
    return one;
}

OperatorCase make_pack(Choices& c) {
    const Shape part = c.shape(1, 3, 4);
    const auto rank = static_cast<std::int32_t>(part.size());
    const std::int32_t axis = c.pick(-rank - 1, rank);
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank + 1 : axis);
    const std::int32_t count = c.pick(1, 4);
    OperatorCase one{.op = Op::pack, .options = model::PackOptions{count, axis}};
    one.inputs = {any_input(c, part)};
    for (std::int32_t i = 1; i < count; ++i) {
        Values more = random_values(c, one.inputs[0].type, part);
        more.scales = one.inputs[0].scales;
        more.zero = one.inputs[0].zero;
        one.inputs.push_back(std::move(more));
    }
    Shape shape = part;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(along), count);
    Expected out = stored_like(one.inputs[0], shape);
    each_index(shape, [&](Shape index, std::size_t at) {
        const Values& in = one.inputs[static_cast<std::size_t>(index[along])];
        index.erase(index.begin() + static_cast<std::ptrdiff_t>(along));
        out.real[at] = in.stored[flat_index(part, index)];
    });
    one.outputs = {out};
    return one;
}

OperatorCase make_unpack(Choices& c) {
    const Values in = any_input(c, c.shape(2, 4, 4));
    const auto rank = static_cast<std::int32_t>(in.shape.size());
    const std::int32_t axis = c.pick(-rank, rank - 1);
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    OperatorCase one{.op = Op::unpack, .options = model::UnpackOptions{in.shape[along], axis}};
    one.inputs = {in};
    for (std::int32_t i = 0; i < in.shape[along]; ++i) {
        Expected part = part_along(in, along, i, 1);
        part.shape.erase(part.shape.begin() + static_cast<std::ptrdiff_t>(along));
        one.outputs.push_back(std::move(part));
    }
    return one;
}

OperatorCase make_gather_nd(Choices& c) {
    const Values in = any_input(c, c.shape_or_empty(1, 6, 3));
    const auto depth =
        static_cast<std::size_t>(c.pick(0, static_cast<std::int32_t>(in.shape.size())));
    const Shape indexed(in.shape.begin(), in.shape.begin() + static_cast<std::ptrdiff_t>(depth));
    const std::int32_t tuples = count_of(indexed) == 0 || c.one_in(24) ? 0 : c.pick(1, 5);
    Values indices{.type = c.one_of({i32, ElementType::int64}),
                   .shape = {tuples, static_cast<std::int32_t>(depth)}};
    for (std::int32_t t = 0; t < tuples; ++t)
        for (std::size_t d = 0; d < depth; ++d)
            indices.stored.push_back(c.pick(0, in.shape[d] - 1));
    Shape shape{tuples};
    shape.insert(shape.end(), in.shape.begin() + static_cast<std::ptrdiff_t>(depth),
                 in.shape.end());
    const auto source = [&](const Shape& index) {
        Shape from;
        for (std::size_t d = 0; d < depth; ++d)
            from.push_back(static_cast<std::int32_t>(
                indices.stored[static_cast<std::size_t>(index[0]) * depth + d]));
        from.insert(from.end(), index.begin() + 1, index.end());
        return from;
    };
    Expected out = moved(in, shape, source);
    return {.op = Op::gather_nd, .inputs = {in, indices}, .outputs = {std::move(out)}};
}

OperatorCase make_gather(Choices& c) {
    const Values in = any_input(c, c.shape_or_empty(1, 6, 3));
    const auto rank = static_cast<std::int32_t>(in.shape.size());
    const std::int32_t axis = c.pick(0, rank - 1);
    const std::int32_t batch = c.one_in(2) ? 0 : c.pick(0, axis);
    Shape indexed(in.shape.begin(), in.shape.begin() + batch);
    for (std::int32_t i = c.pick(0, 2); i > 0; --i) indexed.push_back(c.pick(1, 4));
    const std::int32_t length = in.shape[static_cast<std::size_t>(axis)];
    if (length == 0 || c.one_in(24)) indexed.push_back(0);
    Values indices{.type = c.one_of({i32, ElementType::int64}), .shape = indexed};
    for (std::size_t i = 0; i < count_of(indexed); ++i)
        indices.stored.push_back(c.pick(0, length - 1));
    Shape shape(in.shape.begin(), in.shape.begin() + axis);
    shape.insert(shape.end(), indexed.begin() + batch, indexed.end());
    shape.insert(shape.end(), in.shape.begin() + axis + 1, in.shape.end());
    const auto own = static_cast<std::ptrdiff_t>(indexed.size()) - batch;
    const auto source = [&](const Shape& index) {
        Shape which(index.begin(), index.begin() + batch);
        which.insert(which.end(), index.begin() + axis, index.begin() + axis + own);
        Shape from(index.begin(), index.begin() + axis);
        from.push_back(static_cast<std::int32_t>(indices.stored[flat_index(indexed, which)]));
        from.insert(from.end(), index.begin() + axis + own, index.end());
        return from;
    };
    Expected out = moved(in, shape, source);
    const bool from_end = c.one_in(2);
    return {.op = Op::gather,
            .options = model::GatherOptions{from_end ? axis - rank : axis, batch},
            .inputs = {in, indices},
            .outputs = {std::move(out)}};
}

OperatorCase make_space_to_depth(Choices& c) {
    const std::int32_t block = c.pick(1, 3);
    const Shape shape{c.pick(1, 2), c.pick(1, 3), c.pick(1, 3), c.pick(1, 3) * block * block};
    const Values in =
        any_input(c, {shape[0], shape[1] * block, shape[2] * block, shape[3] / block / block});
    const std::int32_t depth = in.shape[3];
    const auto source = [&](const Shape& i) {
        const std::int32_t place = i[3] / depth;
        return Shape{i[0], i[1] * block + place / block, i[2] * block + place % block,
                     i[3] % depth};
    };
    return {.op = Op::space_to_depth,
            .options = model::SpaceToDepthOptions{block},
            .inputs = {in},
            .outputs = {moved(in, shape, source)}};
}

OperatorCase make_depth_to_space(Choices& c) {
    const std::int32_t block = c.pick(1, 3);
    const std::int32_t depth = c.pick(1, 3);
    const Values in =
        any_input(c, {c.pick(1, 2), c.pick(1, 3), c.pick(1, 3), depth * block * block});
    const Shape shape{in.shape[0], in.shape[1] * block, in.shape[2] * block, depth};
    const auto source = [&](const Shape& i) {
        return Shape{i[0], i[1] / block, i[2] / block,
                     (i[1] % block * block + i[2] % block) * depth + i[3]};
    };
    return {.op = Op::depth_to_space,
            .options = model::DepthToSpaceOptions{block},
            .inputs = {in},
            .outputs = {moved(in, shape, source)}};
}

/// The pixel that is nearest to output pixel `i`, in exact integers.
std::int32_t nearest(std::int32_t i, std::int32_t in, std::int32_t out,
                     const model::ResizeNearestNeighborOptions& options) {
    const bool corners = options.align_corners && out > 1;
    const std::int64_t over = corners ? out - 1 : out;
    const std::int64_t of = corners ? in - 1 : in;
    // (i + 1/2) * of / over, or i * of / over; corners are rounded to the nearest pixel.
    const std::int64_t twice = (2 * i + (options.half_pixel_centers ? 1 : 0)) * of;
    const std::int64_t pixel =
        options.align_corners ? (twice + over) / (2 * over) : twice / (2 * over);
    return static_cast<std::int32_t>(std::min<std::int64_t>(pixel, in - 1));
}

OperatorCase make_resize_nearest_neighbor(Choices& c) {
    const Values in = random_values(c, c.one_of({u8, i8, f32}),
                                    {c.pick(1, 2), c.pick(1, 6), c.pick(1, 6), c.pick(1, 3)});
    const std::int32_t height = c.pick(1, 12);
    const std::int32_t width = c.pick(1, 12);
    model::ResizeNearestNeighborOptions options{.align_corners = c.one_in(3)};
    options.half_pixel_centers = !options.align_corners && c.one_in(2);
    const auto source = [&](const Shape& i) {
        return Shape{i[0], nearest(i[1], in.shape[1], height, options),
                     nearest(i[2], in.shape[2], width, options), i[3]};
    };
    return {.op = Op::resize_nearest_neighbor,
            .options = options,
            .inputs = {in, numbers({height, width})},
            .outputs = {moved(in, {in.shape[0], height, width, in.shape[3]}, source)}};
}

constexpr auto movement_table = std::to_array<NamedMaker>({
    {Op::reshape, make_reshape},
    {Op::squeeze, make_squeeze},
    {Op::expand_dims, make_expand_dims},
    {Op::shape, make_shape},
    {Op::transpose, make_transpose},
    {Op::pad, make_pad},
    {Op::strided_slice, make_strided_slice},
    {Op::slice, make_slice},
    {Op::tile, make_tile},
    {Op::concatenation, make_concatenation},
    {Op::split, make_split},
    {Op::split_v, make_split_v},
    {Op::pack, make_pack},
    {Op::unpack, make_unpack},
    {Op::gather, make_gather},
    {Op::gather_nd, make_gather_nd},
    {Op::space_to_depth, make_space_to_depth},
    {Op::depth_to_space, make_depth_to_space},
    {Op::resize_nearest_neighbor, make_resize_nearest_neighbor},
});

}  // namespace

std::span<const NamedMaker> movement_makers() {
    return movement_table;
}

}  // namespace reef::plain
