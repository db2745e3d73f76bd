// GATHER_ND: slices of input 0 at the index tuples in the last dimension of input 1. GATHER: slices
// of input 0 at the indices of input 1 along one dimension.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

template <typename Index>
class GatherNdKernel final : public Kernel {
  public:
    GatherNdKernel(std::vector<std::int32_t> indexed_shape, std::size_t tuples,
                   std::size_t slice_bytes)
        : indexed_shape_(std::move(indexed_shape)), tuples_(tuples), slice_bytes_(slice_bytes) {}
    [[nodiscard]] std::string name() const override { return "gather_nd reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        // Any number of tuples without an index takes no memory.
        if (indexed_shape_.empty() && slice_bytes_ == 0) return {};
        const auto* index = frame.in<Index>(1);
        for (std::size_t tuple = 0; tuple < tuples_; ++tuple) {
            std::size_t slice = 0;
            for (const std::int32_t length : indexed_shape_) {
                if (*index < 0 || *index >= length)
                    return fail(Cause::bad_input,
                                fmt::format("index {} in tuple {} is outside a dimension of {}",
                                            *index, tuple, length));
                slice = slice * static_cast<std::size_t>(length) + static_cast<std::size_t>(*index);
                ++index;
            }
            if (slice_bytes_ > 0)
                std::memcpy(frame.outputs[0] + tuple * slice_bytes_,
                            frame.inputs[0] + slice * slice_bytes_, slice_bytes_);
        }
        return {};
    }

  private:
    std::vector<std::int32_t> indexed_shape_;
    std::size_t tuples_;
    std::size_t slice_bytes_;
};

/// Both tensors as loops: values are batches x outer x length x slice, indices batches x count.
struct GatherShape {
    std::size_t batches = 1, outer = 1, length = 1, count = 1;
    std::size_t slice_bytes = 0;
};

template <typename Index>
class GatherKernel final : public Kernel {
  public:
    explicit GatherKernel(const GatherShape& shape) : shape_(shape) {}
    [[nodiscard]] std::string name() const override { return "gather reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto* indices = frame.in<Index>(1);
        for (std::size_t i = 0; i < shape_.batches * shape_.count; ++i)
            if (indices[i] < 0 || std::cmp_greater_equal(indices[i], shape_.length))
                return fail(Cause::bad_input, fmt::format("index {} is outside a dimension of {}",
                                                          indices[i], shape_.length));
        // The other lengths of an empty tensor may be any.
        if (shape_.slice_bytes == 0 || shape_.count == 0) return {};
        std::byte* out = frame.outputs[0];
        for (std::size_t part = 0; part < shape_.batches * shape_.outer; ++part) {
            const std::byte* from = frame.inputs[0] + part * shape_.length * shape_.slice_bytes;
            const Index* index = indices + part / shape_.outer * shape_.count;
            for (std::size_t i = 0; i < shape_.count; ++i, out += shape_.slice_bytes)
                std::memcpy(out, from + static_cast<std::size_t>(index[i]) * shape_.slice_bytes,
                            shape_.slice_bytes);
        }
        return {};
    }

  private:
    GatherShape shape_;
};

std::size_t product(std::span<const std::int32_t> lengths) {
    std::size_t result = 1;
    for (const std::int32_t length : lengths) result *= static_cast<std::size_t>(length);
    return result;
}

Result<GatherShape> check_gather(const OperatorView& op) {
    const auto given = REEF_TRY(op.options<model::GatherOptions>());
    const std::span<const std::int32_t> values = op.input(0).shape, indices = op.input(1).shape;
    const auto element = size_of(op.input(0).type);
    if (!element)
        return fail(Cause::unsupported,
                    fmt::format("elements of type {}", name_of(op.input(0).type)));
    const std::size_t axis = REEF_TRY(resolve_axis(given.axis, values.size()));
    const auto rank = static_cast<std::int64_t>(indices.size());
    const std::int64_t batch = given.batch_dims < 0 ? given.batch_dims + rank : given.batch_dims;
    if (batch < 0 || batch > rank || std::cmp_greater(batch, axis))
        return fail(Cause::bad_input,
                    fmt::format("batch_dims {} for indices of shape {} along dimension {}",
                                given.batch_dims, model::shape_text(op.input(1).shape), axis));
    const auto batch_dims = static_cast<std::size_t>(batch);
    if (!std::ranges::equal(values.first(batch_dims), indices.first(batch_dims)))
        return fail(Cause::bad_input, fmt::format("batches of shapes {} and {} differ",
                                                  model::shape_text(op.input(0).shape),
                                                  model::shape_text(op.input(1).shape)));
    std::vector<std::int32_t> computed(values.begin(),
                                       values.begin() + static_cast<std::ptrdiff_t>(axis));
    computed.insert(computed.end(), indices.begin() + batch, indices.end());
    computed.insert(computed.end(), values.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                    values.end());
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    return GatherShape{.batches = product(values.first(batch_dims)),
                       .outer = product(values.subspan(batch_dims, axis - batch_dims)),
                       .length = static_cast<std::size_t>(values[axis]),
                       .count = product(indices.subspan(batch_dims)),
                       .slice_bytes = *element * product(values.subspan(axis + 1))};
}

}  // namespace

PreparedKernel prepare_gather(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    REEF_CHECK(
        expect_type(op.input(1), "input 1 (indices)", {ElementType::int32, ElementType::int64}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    const GatherShape shape = REEF_TRY(check_gather(op));
    if (op.input(1).type == ElementType::int64)
        return std::make_unique<GatherKernel<std::int64_t>>(shape);
    return std::make_unique<GatherKernel<std::int32_t>>(shape);
}

PreparedKernel prepare_gather_nd(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    REEF_CHECK(
        expect_type(op.input(1), "input 1 (indices)", {ElementType::int32, ElementType::int64}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    const auto element = size_of(op.input(0).type);
    if (!element)
        return fail(Cause::unsupported,
                    fmt::format("elements of type {}", name_of(op.input(0).type)));
    const std::vector<std::int32_t>& shape = op.input(0).shape;
    const std::vector<std::int32_t>& indices = op.input(1).shape;
    if (indices.empty() || static_cast<std::size_t>(indices.back()) > shape.size())
        return fail(Cause::bad_input,
                    fmt::format("indices of shape {} into a tensor of shape {}",
                                model::shape_text(indices), model::shape_text(shape)));
    const auto depth = static_cast<std::ptrdiff_t>(indices.back());
    std::size_t tuples = 1;
    std::size_t slice_bytes = *element;
    std::vector<std::int32_t> computed;
    for (auto length = indices.begin(); length != indices.end() - 1; ++length) {
        computed.push_back(*length);
        tuples *= static_cast<std::size_t>(*length);
    }
    for (auto length = shape.begin() + depth; length != shape.end(); ++length) {
        computed.push_back(*length);
        slice_bytes *= static_cast<std::size_t>(*length);
    }
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    std::vector indexed(shape.begin(), shape.begin() + depth);
    if (op.input(1).type == ElementType::int64)
        return std::make_unique<GatherNdKernel<std::int64_t>>(std::move(indexed), tuples,
                                                              slice_bytes);
    return std::make_unique<GatherNdKernel<std::int32_t>>(std::move(indexed), tuples, slice_bytes);
}

}  // namespace reef::cpu
