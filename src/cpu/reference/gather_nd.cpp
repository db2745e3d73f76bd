// GATHER_ND: slices of input 0 at the index tuples in the last dimension of input 1.
#include <fmt/format.h>

#include <cstring>

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

}  // namespace

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
