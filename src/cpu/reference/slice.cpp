// STRIDED_SLICE and SLICE.
#include <fmt/format.h>

#include <algorithm>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/rearrangement.h"

namespace reef::cpu {
namespace {

bool has_bit(std::int32_t mask, std::size_t i) {
    return ((static_cast<std::uint32_t>(mask) >> i) & 1U) != 0;
}

/// Begin, end and stride as the file has them, with the masks of one position.
struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t stride = 1;
    bool from_edge = false;  ///< begin_mask
    bool to_edge = false;    ///< end_mask
    bool one = false;        ///< shrink_axis_mask: the element at begin, and no dimension
};

/// Positions first, first + stride, ...: `count` of them.
struct Positions {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Ends outside the dimension move to its edge.
Result<Positions> positions_in(const Range& range, std::int64_t length) {
    if (range.stride == 0) return fail(Cause::bad_input, "a stride of 0");
    const bool forward = range.stride > 0;
    const std::int64_t low = forward ? 0 : -1;
    const std::int64_t high = forward ? length : length - 1;
    const auto clamped = [&](std::int64_t at) {
        return std::clamp(at < 0 ? at + length : at, low, std::max(low, high));
    };
    const std::int64_t first = range.from_edge ? (forward ? 0 : length - 1) : clamped(range.begin);
    if (range.one) {
        if (first < 0 || first >= length)
            return fail(Cause::bad_input,
                        fmt::format("element {} of a dimension of {}", range.begin, length));
        return Positions{first, 1};
    }
    const std::int64_t stop = range.to_edge ? (forward ? length : -1) : clamped(range.end);
    const std::int64_t distance = forward ? stop - first : first - stop;
    const std::int64_t stride = forward ? range.stride : -range.stride;
    return Positions{first, distance <= 0 ? 0 : (distance + stride - 1) / stride};
}

/// What a slice takes of the input, dimension by dimension.
class SliceBuilder {
  public:
    explicit SliceBuilder(const std::vector<std::int32_t>& shape)
        : shape_(shape), steps_(dense_steps(shape)) {}

    [[nodiscard]] std::size_t left() const { return shape_.size() - axis_; }

    void add_new_axis() { add(1, 0); }
    void take_whole() {
        add(shape_[axis_], steps_[axis_]);
        ++axis_;
    }
    Status take(const Range& range) {
        const Positions at = REEF_TRY(positions_in(range, shape_[axis_]));
        if (at.count > 0) from_.first += at.first * steps_[axis_];
        if (!range.one) add(static_cast<std::int32_t>(at.count), steps_[axis_] * range.stride);
        ++axis_;
        return {};
    }

    [[nodiscard]] PreparedKernel finish(const OperatorView& op, const char* name) {
        while (left() > 0) take_whole();
        REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
        REEF_CHECK(expect_shape(op.output(0), "output 0", computed_));
        return rearrangement_kernel(name, op.input(0), std::move(from_));
    }

  private:
    void add(std::int32_t length, std::ptrdiff_t step) {
        computed_.push_back(length);
        from_.dimensions.push_back({static_cast<std::size_t>(length), step});
    }

    const std::vector<std::int32_t>& shape_;
    std::vector<std::ptrdiff_t> steps_;
    std::size_t axis_ = 0;
    std::vector<std::int32_t> computed_;
    Rearrangement from_;
};

/// How many dimensions of the input the positions after the ellipsis take.
std::size_t taken_after(const model::StridedSliceOptions& given, std::size_t ellipsis,
                        std::size_t count) {
    std::size_t taken = 0;
    for (std::size_t i = ellipsis + 1; i < count; ++i)
        if (!has_bit(given.new_axis_mask, i)) ++taken;
    return taken;
}

}  // namespace

PreparedKernel prepare_strided_slice(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(4, 4, 1));
    const auto given = REEF_TRY(op.options<model::StridedSliceOptions>());
    if (given.offset)
        return fail(Cause::unsupported, "ends that count from the beginnings (offset)");
    const auto begin = REEF_TRY(constant_int32(op, 1, "the beginnings"));
    const auto end = REEF_TRY(constant_int32(op, 2, "the ends"));
    const auto strides = REEF_TRY(constant_int32(op, 3, "the strides"));
    if (end.size() != begin.size() || strides.size() != begin.size() || begin.size() > 32)
        return fail(Cause::bad_input, fmt::format("{} beginnings, {} ends and {} strides",
                                                  begin.size(), end.size(), strides.size()));
    SliceBuilder slice(op.input(0).shape);
    for (std::size_t i = 0; i < begin.size(); ++i) {
        if (has_bit(given.ellipsis_mask, i)) {
            const std::size_t after = taken_after(given, i, begin.size());
            while (slice.left() > after) slice.take_whole();
        } else if (has_bit(given.new_axis_mask, i)) {
            slice.add_new_axis();
        } else if (slice.left() == 0) {
            return fail(Cause::bad_input, fmt::format("a slice of more than the {} dimensions",
                                                      op.input(0).shape.size()));
        } else {
            REEF_CHECK(
                slice.take({begin[i], end[i], strides[i], has_bit(given.begin_mask, i),
                            has_bit(given.end_mask, i), has_bit(given.shrink_axis_mask, i)}));
        }
    }
    return slice.finish(op, "strided_slice");
}

PreparedKernel prepare_slice(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(3, 3, 1));
    const auto begin = REEF_TRY(constant_integers(op, 1, "the beginnings"));
    const auto size = REEF_TRY(constant_integers(op, 2, "the sizes"));
    const auto& shape = op.input(0).shape;
    if (begin.size() != shape.size() || size.size() != shape.size())
        return fail(Cause::bad_input, fmt::format("{} beginnings and {} sizes for {} dimensions",
                                                  begin.size(), size.size(), shape.size()));
    SliceBuilder slice(shape);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::int64_t length = shape[i];
        const bool inside =
            begin[i] >= 0 && begin[i] <= length && size[i] >= -1 && size[i] <= length - begin[i];
        if (!inside)
            return fail(Cause::bad_input, fmt::format("{} elements from {} on of a dimension of {}",
                                                      size[i], begin[i], length));
        const std::int64_t end = size[i] == -1 ? length : begin[i] + size[i];
        REEF_CHECK(slice.take({.begin = begin[i], .end = end}));
    }
    return slice.finish(op, "slice");
}

}  // namespace reef::cpu
