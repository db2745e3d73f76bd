#include "cpu/reference/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// 255 * count stays below 2^31.
constexpr std::int64_t most_elements = 1 << 23;

}  // namespace

bool Reduction::over_height_and_width() const {
    return keep_dims && axes.size() == 4 &&
           (stored_axes == std::vector{1, 2} || stored_axes == std::vector{2, 1});
}

Result<Reduction> check_reduction(const OperatorView& op,
                                  std::initializer_list<ElementType> types) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    Reduction reduction;
    reduction.keep_dims = REEF_TRY(op.options<model::ReducerOptions>()).keep_dims;
    const model::Tensor& input = op.input(0);
    const std::size_t rank = input.shape.size();
    REEF_CHECK(expect_type(input, "input 0", types));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    if (input.element_count() == 0) return fail(Cause::bad_input, "a reduction of no elements");
    reduction.stored_axes = REEF_TRY(constant_int32(op, 1, "the axes"));
    std::vector<bool> reduced(rank);
    for (const std::int32_t axis : reduction.stored_axes)
        reduced[REEF_TRY(resolve_axis(axis, rank))] = true;
    std::vector<std::int32_t> shape;
    reduction.axes.resize(std::max<std::size_t>(rank, 1));
    for (std::size_t i = rank; i-- > 0;) {
        const std::int32_t length = input.shape[i];
        reduction.axes[i].length = static_cast<std::size_t>(length);
        if (reduced[i]) {
            reduction.count *= length;
            if (reduction.keep_dims) shape.push_back(1);
        } else {
            reduction.axes[i].output_step = reduction.outputs;
            reduction.outputs *= static_cast<std::size_t>(length);
            shape.push_back(length);
        }
    }
    std::ranges::reverse(shape);
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    if (*size_of(input.type) < 4 && reduction.count > most_elements)
        return fail(Cause::unsupported, fmt::format("{} elements to one, more than {}",
                                                    reduction.count, most_elements));
    return reduction;
}

}  // namespace reef::cpu
