// TRANSPOSE, TILE, SPACE_TO_DEPTH and DEPTH_TO_SPACE.
#include <fmt/format.h>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/rearrangement.h"

namespace reef::cpu {
namespace {

using Lengths = std::vector<std::int32_t>;

std::size_t length_of(std::int32_t length) {
    return static_cast<std::size_t>(length);
}

Status check_blocks(const OperatorView& op, std::int32_t block) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    if (op.input(0).shape.size() != 4)
        return fail(Cause::bad_input, fmt::format("input 0 is {}, not of four dimensions",
                                                  model::shape_text(op.input(0).shape)));
    if (block < 1 || block > 1 << 12)
        return fail(Cause::bad_input, fmt::format("blocks of {} pixels, not 1 to 4096", block));
    return {};
}

}  // namespace

PreparedKernel prepare_transpose(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    const Lengths& shape = op.input(0).shape;
    const auto order = REEF_TRY(constant_int32(op, 1, "the permutation"));
    if (order.size() != shape.size())
        return fail(Cause::bad_input, fmt::format("a permutation of {} for {} dimensions",
                                                  order.size(), shape.size()));
    const auto steps = dense_steps(shape);
    std::vector<bool> taken(shape.size());
    Lengths computed;
    Rearrangement from;
    for (const std::int32_t given : order) {
        const std::size_t axis = REEF_TRY(resolve_axis(given, shape.size()));
        if (taken[axis])
            return fail(Cause::bad_input, fmt::format("the permutation holds {} twice", axis));
        taken[axis] = true;
        computed.push_back(shape[axis]);
        from.dimensions.push_back({length_of(shape[axis]), steps[axis]});
    }
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    if (options.kernels == KernelSet::fast && size_of(op.input(0).type) == 1)
        if (auto kernel = fast_byte_transpose("transpose", from)) return kernel;
    return rearrangement_kernel("transpose", op.input(0), std::move(from));
}

PreparedKernel prepare_tile(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    const Lengths& shape = op.input(0).shape;
    const auto multiples = REEF_TRY(constant_integers(op, 1, "the multiples"));
    if (multiples.size() != shape.size())
        return fail(Cause::bad_input,
                    fmt::format("{} multiples for {} dimensions", multiples.size(), shape.size()));
    const auto steps = dense_steps(shape);
    Lengths computed;
    Rearrangement from;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::int64_t length = 0;
        if (multiples[i] < 0 || __builtin_mul_overflow(multiples[i], shape[i], &length) ||
            length > std::numeric_limits<std::int32_t>::max())
            return fail(Cause::bad_input,
                        fmt::format("a dimension of {} repeated {} times", shape[i], multiples[i]));
        computed.push_back(static_cast<std::int32_t>(length));
        from.dimensions.push_back({static_cast<std::size_t>(multiples[i]), 0});
        from.dimensions.push_back({length_of(shape[i]), steps[i]});
    }
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    return rearrangement_kernel("tile", op.input(0), std::move(from));
}

PreparedKernel prepare_space_to_depth(const OperatorView& op, const PrepareOptions& /*options*/) {
    const std::int32_t block = REEF_TRY(op.options<model::SpaceToDepthOptions>()).block_size;
    REEF_CHECK(check_blocks(op, block));
    const Lengths& in = op.input(0).shape;
    if (in[1] % block != 0 || in[2] % block != 0)
        return fail(Cause::bad_input, fmt::format("{} does not split into blocks of {}",
                                                  model::shape_text(in), block));
    const std::int64_t depth = std::int64_t{in[3]} * block * block;
    if (depth > std::numeric_limits<std::int32_t>::max())
        return fail(Cause::bad_input, "the output's channels overflow 32 bits");
    const Lengths out{in[0], in[1] / block, in[2] / block, static_cast<std::int32_t>(depth)};
    REEF_CHECK(expect_shape(op.output(0), "output 0", out));
    const auto steps = dense_steps(in);
    Rearrangement from;
    from.dimensions = {{length_of(out[0]), steps[0]},         {length_of(out[1]), steps[1] * block},
                       {length_of(out[2]), steps[2] * block}, {length_of(block), steps[1]},
                       {length_of(block), steps[2]},          {length_of(in[3]), 1}};
    return rearrangement_kernel("space_to_depth", op.input(0), std::move(from));
}

PreparedKernel prepare_depth_to_space(const OperatorView& op, const PrepareOptions& /*options*/) {
    const std::int32_t block = REEF_TRY(op.options<model::DepthToSpaceOptions>()).block_size;
    REEF_CHECK(check_blocks(op, block));
    const Lengths& in = op.input(0).shape;
    if (in[3] % (block * block) != 0)
        return fail(Cause::bad_input,
                    fmt::format("{} channels do not make blocks of {}x{}", in[3], block, block));
    const std::int64_t height = std::int64_t{in[1]} * block;
    const std::int64_t width = std::int64_t{in[2]} * block;
    if (std::max(height, width) > std::numeric_limits<std::int32_t>::max())
        return fail(Cause::bad_input, "the output's height or width overflows 32 bits");
    const std::int32_t depth = in[3] / (block * block);
    REEF_CHECK(expect_shape(
        op.output(0), "output 0",
        {in[0], static_cast<std::int32_t>(height), static_cast<std::int32_t>(width), depth}));
    const auto steps = dense_steps(in);
    Rearrangement from;
    from.dimensions = {{length_of(in[0]), steps[0]},
                       {length_of(in[1]), steps[1]},
                       {length_of(block), std::ptrdiff_t{block} * depth},
                       {length_of(in[2]), steps[2]},
                       {length_of(block), depth},
                       {length_of(depth), 1}};
    return rearrangement_kernel("depth_to_space", op.input(0), std::move(from));
}

}  // namespace reef::cpu
