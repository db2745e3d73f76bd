// ARG_MAX and ARG_MIN: the index of the first largest or smallest element along an axis.
#include "cpu/prepare/arg_max.h"

#include <fmt/format.h>

#include <functional>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// Where the first element is that no other one beats.
template <typename T, typename Index, typename Beats>
class ArgMaxKernel final : public Kernel {
  public:
    ArgMaxKernel(const char* name, const ArgMaxShape& shape) : name_(name), shape_(shape) {}

    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        Index* out = frame.out<Index>(0);
        for (std::size_t o = 0; o < shape_.outer; ++o) {
            const T* in = frame.in<T>(0) + o * shape_.length * shape_.inner;
            for (std::size_t i = 0; i < shape_.inner; ++i) {
                std::size_t best = 0;
                for (std::size_t k = 1; k < shape_.length; ++k)
                    if (Beats{}(in[k * shape_.inner + i], in[best * shape_.inner + i])) best = k;
                *out++ = static_cast<Index>(best);
            }
        }
        return {};
    }

  private:
    const char* name_;
    ArgMaxShape shape_;
};

template <typename T, typename Beats>
PreparedKernel kernel_of_index(const char* name, const ArgMaxShape& shape, ElementType index_type) {
    if (index_type == ElementType::int64)
        return std::make_unique<ArgMaxKernel<T, std::int64_t, Beats>>(name, shape);
    return std::make_unique<ArgMaxKernel<T, std::int32_t, Beats>>(name, shape);
}

template <typename Beats>
PreparedKernel plain_arg_max(const char* name, const ArgMaxShape& shape, const OperatorView& op) {
    const ElementType index_type = op.output(0).type;
    switch (op.input(0).type) {
        case ElementType::uint8:
            return kernel_of_index<std::uint8_t, Beats>(name, shape, index_type);
        case ElementType::int8:
            return kernel_of_index<std::int8_t, Beats>(name, shape, index_type);
        case ElementType::int32:
            return kernel_of_index<std::int32_t, Beats>(name, shape, index_type);
        default:
            return kernel_of_index<float, Beats>(name, shape, index_type);
    }
}

Result<std::int64_t> constant_axis(const OperatorView& op) {
    const model::Tensor& axis = op.input(1);
    if (axis.element_count() != 1)
        return fail(Cause::bad_input,
                    fmt::format("the axis has {} elements", axis.element_count()));
    if (axis.type != ElementType::int64) return REEF_TRY(constant_int32(op, 1, "the axis"))[0];
    ByteReader reader(op.constant(1));
    if (reader.remaining() == 0) return fail(Cause::unsupported, "the axis is not constant");
    return static_cast<std::int64_t>(REEF_TRY(reader.u64()));
}

/// TFLite makes an output of the type that the options name, whatever the file declares. Files of
/// the first converters name none.
template <typename Options>
Status expect_output_type(const OperatorView& op) {
    const ElementType given = REEF_TRY(op.options<Options>()).output_type;
    if (given == ElementType::float32) return {};
    return expect_type(op.output(0), "output 0", {given});
}

Result<ArgMaxShape> check_arg_max(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(
        input, "input 0",
        {ElementType::uint8, ElementType::int8, ElementType::int32, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::int32, ElementType::int64}));
    const std::size_t axis =
        REEF_TRY(resolve_axis(REEF_TRY(constant_axis(op)), input.shape.size()));
    if (input.element_count() == 0) return fail(Cause::bad_input, "input 0 has no elements");
    ArgMaxShape shape{.length = static_cast<std::size_t>(input.shape[axis])};
    for (std::size_t i = 0; i < input.shape.size(); ++i) {
        if (i < axis) shape.outer *= static_cast<std::size_t>(input.shape[i]);
        if (i > axis) shape.inner *= static_cast<std::size_t>(input.shape[i]);
    }
    if (shape.length > std::numeric_limits<std::int32_t>::max())
        return fail(Cause::unsupported, "an axis whose indices do not fit 32 bits");
    std::vector<std::int32_t> rest = input.shape;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
    REEF_CHECK(expect_shape(op.output(0), "output 0", rest));
    return shape;
}

}  // namespace

PreparedKernel prepare_arg_max(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(expect_output_type<model::ArgMaxOptions>(op));
    const ArgMaxShape shape = REEF_TRY(check_arg_max(op));
    const ElementType type = op.input(0).type;
    const bool bytes = type == ElementType::uint8 || type == ElementType::int8;
    if (options.kernels == KernelSet::fast && bytes && fast_arg_max_applies(shape))
        return fast_arg_max(shape, type, op.output(0).type);
    if (options.kernels == KernelSet::fast && type == ElementType::float32)
        return fast_float_arg_max(shape, Extreme::largest, op.output(0).type);
    return plain_arg_max<std::greater<>>("arg_max", shape, op);
}

PreparedKernel prepare_arg_min(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(expect_output_type<model::ArgMinOptions>(op));
    const ArgMaxShape shape = REEF_TRY(check_arg_max(op));
    if (options.kernels == KernelSet::fast && op.input(0).type == ElementType::float32)
        return fast_float_arg_max(shape, Extreme::smallest, op.output(0).type);
    return plain_arg_max<std::less<>>("arg_min", shape, op);
}

}  // namespace reef::cpu
