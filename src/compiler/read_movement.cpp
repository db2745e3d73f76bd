// Operators that move values to other places.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "compiler/graph_reader.h"

namespace reef::compiler {

namespace {

/// Of a dimension of a tensor of that rank; nothing where it is the batch, or none.
std::optional<Axis> axis_of(std::int32_t dimension, std::int32_t rank) {
    if (dimension < 0) dimension += rank;
    const std::int32_t at = dimension + 4 - rank;
    if (rank > 4 || dimension < 0 || at < 1 || at > 3) return std::nullopt;
    return static_cast<Axis>(at - 1);
}

std::int32_t size_along(const Value& value, Axis axis) {
    return axis == Axis::rows ? value.height : axis == Axis::columns ? value.width : value.channels;
}

/// What SQUEEZE leaves of a shape: the named dimensions go, or without names all of length 1.
std::vector<std::int32_t> without_ones(const std::vector<std::int32_t>& shape, const Operator& op) {
    const auto* given = std::get_if<model::SqueezeOptions>(&op.options);
    const auto rank = static_cast<std::int32_t>(shape.size());
    std::vector<std::int32_t> left;
    for (std::int32_t i = 0; i < rank; ++i) {
        const auto is_this = [&](std::int32_t named) { return named == i || named + rank == i; };
        const bool named = given != nullptr && std::ranges::any_of(given->squeeze_dims, is_this);
        const bool any = given == nullptr || given->squeeze_dims.empty();
        const std::int32_t length = shape[static_cast<std::size_t>(i)];
        if (!(named || any) || length != 1) left.push_back(length);
    }
    return left;
}

}  // namespace

Read GraphReader::concatenation(const Operator& op) const {
    const auto o = REEF_TRY(options<model::ConcatenationOptions>(op));
    const Value& out = value(op.outputs[0]);
    const auto rank = static_cast<std::int32_t>(tensor(op.outputs[0]).shape.size());
    const auto axis = axis_of(o.axis, rank);
    if (!axis) return std::unexpected("it joins batches");
    std::int64_t size = 0;
    for (const TensorIndex i : op.inputs) {
        if (i == model::absent_tensor || is_constant(i))
            return std::unexpected("one of its inputs is a constant");
        const Value& in = value(i);
        if (static_cast<std::int32_t>(tensor(i).shape.size()) != rank) return disagree();
        for (const Axis other : {Axis::rows, Axis::columns, Axis::channels})
            if (other != *axis && size_along(in, other) != size_along(out, other))
                return disagree();
        if (out.type == ElementType::int8 && !in.same_numbers(out))
            return std::unexpected("its inputs of int8 have different scales");
        size += size_along(in, *axis);
    }
    if (size != size_along(out, *axis)) return disagree();
    return Concatenation{o.activation, *axis};
}

/// SPACE_TO_DEPTH and DEPTH_TO_SPACE.
Read GraphReader::blocks(const Operator& op) const {
    const bool from_channels = op.code.builtin == Op::depth_to_space;
    const std::int32_t side = from_channels
                                  ? REEF_TRY(options<model::DepthToSpaceOptions>(op)).block_size
                                  : REEF_TRY(options<model::SpaceToDepthOptions>(op)).block_size;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const Value &fine = from_channels ? out : in, &coarse = from_channels ? in : out;
    if (side < 1 || side > 64 || fine.height != side * coarse.height ||
        fine.width != side * coarse.width || coarse.channels != side * side * fine.channels)
        return disagree();
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    return Blocks{side, from_channels};
}

Read GraphReader::transpose(const Operator& op) const {
    if (op.inputs.size() != 2) return disagree();
    const auto order = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const auto rank = static_cast<std::int32_t>(tensor(op.inputs[0]).shape.size());
    if (!order || static_cast<std::int32_t>(order->size()) != rank || rank > 4)
        return std::unexpected("its order of dimensions is no constant");
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    std::vector<std::int32_t> each(order->size());
    std::iota(each.begin(), each.end(), 0);
    auto sorted = *order;
    for (auto& axis : sorted)
        if (axis < 0) axis += rank;
    if (!std::ranges::is_permutation(sorted, each)) return disagree();
    Transpose transpose;
    for (std::int32_t i = std::max(0, rank - 3); i < rank; ++i) {
        const auto from = axis_of((*order)[static_cast<std::size_t>(i)], rank);
        const auto to = axis_of(i, rank);
        if (!from || !to) return std::unexpected("it moves the batch");
        transpose.from[static_cast<std::size_t>(*to)] = *from;
        if (size_along(in, *from) != size_along(out, *to)) return disagree();
    }
    return transpose;
}

Read GraphReader::pad(const Operator& op) const {
    if (op.inputs.size() != 2) return disagree();
    const auto widths = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const std::size_t rank = tensor(op.inputs[0]).shape.size();
    if (!widths || widths->size() != 2 * rank || rank > 4)
        return std::unexpected("its widths are no constant of two for each dimension");
    std::array<std::int32_t, 8> p{};
    std::ranges::copy_backward(*widths, p.end());
    if (p[0] != 0 || p[1] != 0 || p[6] != 0)
        return std::unexpected("it pads in front of the channels");
    if (std::ranges::any_of(p, [](auto n) { return n < 0 || n > 4096; }) ||
        out.height != in.height + p[2] + p[3] || out.width != in.width + p[4] + p[5] ||
        out.channels != in.channels + p[7])
        return disagree();
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    return Pad{p[2], p[3], p[4], p[5], p[7]};
}

bool GraphReader::has_new_shape(const Operator& op) const {
    const auto &from = tensor(op.inputs[0]).shape, &to = tensor(op.outputs[0]).shape;
    auto wanted = std::get_if<model::ReshapeOptions>(&op.options) != nullptr
                      ? std::get<model::ReshapeOptions>(op.options).new_shape
                      : std::vector<std::int32_t>{};
    if (op.code.builtin == Op::squeeze) {
        wanted = without_ones(from, op);
    } else if (op.code.builtin == Op::expand_dims) {
        const auto axes = op.inputs.size() == 2
                              ? constant<std::int32_t>(op.inputs[1], ElementType::int32)
                              : std::nullopt;
        const auto rank = static_cast<std::int32_t>(from.size());
        if (!axes || axes->size() != 1 || (*axes)[0] < -rank - 1 || (*axes)[0] > rank) return false;
        wanted = from;
        wanted.insert(wanted.begin() + (*axes)[0] + ((*axes)[0] < 0 ? rank + 1 : 0), 1);
    } else if (op.inputs.size() > 1 && op.inputs[1] != model::absent_tensor) {
        const auto given = constant<std::int32_t>(op.inputs[1], ElementType::int32);
        if (!given) return false;
        wanted = *given;
    } else if (wanted == std::vector<std::int32_t>{0}) {
        wanted.clear();  // old converters wrote [0] for a scalar
    }
    // -1 is whatever is left.
    return std::ranges::count(wanted, -1) <= 1 &&
           std::ranges::equal(wanted, to, [](auto a, auto b) { return a == -1 || a == b; });
}

Read GraphReader::reshape(const Operator& op) const {
    if (op.code.builtin == Op::reshape) REEF_CHECK(options<model::ReshapeOptions>(op));
    if (op.code.builtin == Op::squeeze) REEF_CHECK(options<model::SqueezeOptions>(op));
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (in.pixels() * in.channels != out.pixels() * out.channels || !has_new_shape(op))
        return disagree();
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    return Reshape{};
}

bool GraphReader::has_split_lengths(const Operator& op, std::int32_t axis) const {
    const auto length = [&](TensorIndex out) {
        return tensor(out).shape[static_cast<std::size_t>(axis)];
    };
    if (op.code.builtin == Op::split)
        return std::ranges::all_of(
            op.outputs, [&](TensorIndex out) { return length(out) == length(op.outputs[0]); });
    const auto lengths = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    return lengths && std::ranges::count(*lengths, -1) <= 1 &&
           std::ranges::equal(*lengths, op.outputs, [&](std::int32_t given, TensorIndex out) {
               return given == -1 || given == length(out);
           });
}

/// SPLIT and SPLIT_V.
Read GraphReader::split(const Operator& op) const {
    const bool with_sizes = op.code.builtin == Op::split_v;
    if (op.inputs.size() != (with_sizes ? 3U : 2U)) return disagree();
    const auto parts = with_sizes ? REEF_TRY(options<model::SplitVOptions>(op)).num_splits
                                  : REEF_TRY(options<model::SplitOptions>(op)).num_splits;
    if (!std::cmp_equal(parts, op.outputs.size())) return disagree();
    const TensorIndex from = op.inputs[with_sizes ? 0 : 1];
    const auto axes = constant<std::int32_t>(op.inputs[with_sizes ? 2 : 0], ElementType::int32);
    const auto rank = static_cast<std::int32_t>(tensor(from).shape.size());
    if (!axes || axes->size() != 1 || rank == 0)
        return std::unexpected("its dimension is no constant");
    const std::int32_t axis = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
    if (axis < 0 || axis >= rank || axis + 4 - rank < 1)
        return std::unexpected("it cuts another dimension than height, width and channels");
    Slice slice;
    std::int32_t at = 0;
    for (const TensorIndex out : op.outputs) {
        if (!value(from).same_numbers(value(out))) return std::unexpected("it changes the scale");
        const auto& shape = tensor(out).shape;
        if (static_cast<std::int32_t>(shape.size()) != rank) return disagree();
        auto others = tensor(from).shape;
        others[static_cast<std::size_t>(axis)] = shape[static_cast<std::size_t>(axis)];
        if (shape != others) return disagree();
        Slice::Part part;
        (axis + 4 - rank == 1 ? part.y : axis + 4 - rank == 2 ? part.x : part.channel) = at;
        slice.parts.push_back(part);
        at += shape[static_cast<std::size_t>(axis)];
    }
    if (at != tensor(from).shape[static_cast<std::size_t>(axis)] || !has_split_lengths(op, axis))
        return disagree();
    return slice;
}

/// One output, of a tensor with as many dimensions.
Read GraphReader::slice_of(const Operator& op, std::span<const std::int32_t> begin,
                           std::span<const std::int32_t> step) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const auto& shape = tensor(op.inputs[0]).shape;
    const std::size_t rank = shape.size();
    if (rank > 4 || begin.size() != rank || tensor(op.outputs[0]).shape.size() != rank)
        return std::unexpected("it changes the number of dimensions");
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    std::array<std::int32_t, 4> from{0, 0, 0, 0}, by{1, 1, 1, 1};
    std::ranges::copy_backward(begin, from.end());
    std::ranges::copy_backward(step, by.end());
    if (std::ranges::any_of(by, [](auto n) { return n < 1; }))
        return std::unexpected("it goes backwards");
    if (by[3] != 1) return std::unexpected("it leaves out channels between others");
    const Slice::Part part{from[1], from[2], from[3], by[1], by[2]};
    const bool inside = std::ranges::all_of(from, [](auto n) { return n >= 0; }) &&
                        std::ranges::all_of(by, [](auto n) { return n <= 4096; }) &&
                        part.y + (out.height - 1) * std::int64_t{part.step_y} < in.height &&
                        part.x + (out.width - 1) * std::int64_t{part.step_x} < in.width &&
                        part.channel + std::int64_t{out.channels} <= in.channels;
    if (!inside || from[0] != 0) return disagree();
    return Slice{{part}};
}

Read GraphReader::slice(const Operator& op) const {
    if (op.inputs.size() != 3) return disagree();
    const auto begin = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const auto size = constant<std::int32_t>(op.inputs[2], ElementType::int32);
    if (!begin || !size) return std::unexpected("what it takes is no constant");
    const auto &in = tensor(op.inputs[0]).shape, &out = tensor(op.outputs[0]).shape;
    if (begin->size() != in.size() || size->size() != in.size() || out.size() != in.size())
        return disagree();
    // -1 is all that is left.
    for (std::size_t i = 0; i < in.size(); ++i)
        if (out[i] != ((*size)[i] == -1 ? in[i] - std::int64_t{(*begin)[i]} : (*size)[i]))
            return disagree();
    const std::vector<std::int32_t> ones(begin->size(), 1);
    return slice_of(op, *begin, ones);
}

Read GraphReader::strided_slice(const Operator& op) const {
    if (op.inputs.size() != 4) return disagree();
    const auto o = REEF_TRY(options<model::StridedSliceOptions>(op));
    auto begin = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const auto end = constant<std::int32_t>(op.inputs[2], ElementType::int32);
    const auto step = constant<std::int32_t>(op.inputs[3], ElementType::int32);
    if (!begin || !end || !step) return std::unexpected("what it takes is no constant");
    if (o.ellipsis_mask != 0 || o.new_axis_mask != 0 || o.shrink_axis_mask != 0 || o.offset)
        return std::unexpected("it changes the number of dimensions");
    const auto &shape = tensor(op.inputs[0]).shape, &out = tensor(op.outputs[0]).shape;
    if (begin->size() != shape.size() || end->size() != shape.size() ||
        step->size() != shape.size() || out.size() != shape.size())
        return disagree();
    for (std::size_t i = 0; i < begin->size(); ++i) {
        if ((*step)[i] < 1) return std::unexpected("it goes backwards");
        std::int32_t& at = (*begin)[i];
        if ((o.begin_mask >> i & 1) != 0) at = 0;
        if (at < 0) at += shape[i];
        std::int32_t stop = (*end)[i];
        if ((o.end_mask >> i & 1) != 0 || stop > shape[i]) stop = shape[i];
        if (stop < 0) stop += shape[i];
        const std::int64_t length = std::int64_t{stop} - at;
        if (length < 1 || out[i] != (length + (*step)[i] - 1) / (*step)[i]) return disagree();
    }
    return slice_of(op, *begin, *step);
}

}  // namespace reef::compiler
