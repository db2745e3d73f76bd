// SOFTMAX and LOG_SOFTMAX over the last axis.
//
// uint8 and int8: exponentials come from a table of 256 floats and are summed in order; the output
// has scale 1/256 and the type's lowest value as zero point (TFLite's rule).
#include "cpu/reference/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"

namespace reef::cpu {
namespace {

/// uint8 rounds by adding one half, int8 as round(): they differ just below a half. Values are not
/// negative and below 2^9, so that what is left of them is exact.
template <typename T>
std::int32_t rounded(float value) {
    if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<std::int32_t>(value + 0.5F);
    const auto whole = static_cast<std::int32_t>(value);
    return whole + (value - static_cast<float>(whole) >= 0.5F ? 1 : 0);
}

template <typename T>
class QuantizedSoftmax final : public Kernel {
  public:
    QuantizedSoftmax(const SoftmaxShape& shape, const SoftmaxTable& table, AffineParameters out)
        : shape_(shape), table_(table), out_(out) {}

    [[nodiscard]] std::string name() const override { return "softmax reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* in = frame.in<T>(0);
        T* out = frame.out<T>(0);
        const std::size_t grain = 16384 / shape_.length + 1;
        frame.pool.parallel_for(
            shape_.rows, grain, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                std::size_t row = begin;
                for (; row + rows_at_once <= end; row += rows_at_once)
                    softmax<rows_at_once>(in + row * shape_.length, out + row * shape_.length);
                for (; row < end; ++row)
                    softmax<1>(in + row * shape_.length, out + row * shape_.length);
            });
        return {};
    }

  private:
    /// Sums of one row wait for one another: their order is TFLite's. Those of several do not.
    static constexpr std::size_t rows_at_once = 8;

    /// What makes a row's values indices of the table.
    [[nodiscard]] std::ptrdiff_t shift_of(const T* in) const {
        T largest = in[0];
        for (std::size_t i = 1; i < shape_.length; ++i) largest = std::max(largest, in[i]);
        return 255 - largest;
    }
    [[nodiscard]] float exponential(T value, std::ptrdiff_t shift) const {
        return table_.exponentials[static_cast<std::size_t>(value + shift)];
    }

    template <std::size_t kRows>
    void softmax(const T* in, T* out) const {
        std::ptrdiff_t shifts[kRows] = {};
        float sums[kRows] = {};
        for (std::size_t row = 0; row < kRows; ++row)
            shifts[row] = shift_of(in + row * shape_.length);
        for (std::size_t i = 0; i < shape_.length; ++i)
            for (std::size_t row = 0; row < kRows; ++row)
                sums[row] += exponential(in[row * shape_.length + i], shifts[row]);
        for (std::size_t row = 0; row < kRows; ++row)
            divide(in + row * shape_.length, shifts[row], 1.0F / (sums[row] * out_.scale),
                   out + row * shape_.length);
    }

    void divide(const T* in, std::ptrdiff_t shift, float factor, T* out) const {
        constexpr std::size_t at_once = 64;
        const std::int32_t zero_point = out_.zero_point;
        float products[at_once];
        for (std::size_t i = 0; i < shape_.length; i += at_once) {
            const std::size_t count = std::min(at_once, shape_.length - i);
            for (std::size_t k = 0; k < count; ++k)
                products[k] = exponential(in[i + k], shift) * factor;
            for (std::size_t k = 0; k < count; ++k)
                out[i + k] = static_cast<T>(std::clamp<std::int32_t>(
                    rounded<T>(products[k]) + zero_point, std::numeric_limits<T>::min(),
                    std::numeric_limits<T>::max()));
        }
    }

    SoftmaxShape shape_;
    SoftmaxTable table_;
    AffineParameters out_;
};

void float_softmax(const float* in, float* out, std::size_t length, float beta) {
    const float largest = *std::max_element(in, in + length);
    float sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
        out[i] = std::exp((in[i] - largest) * beta);
        sum += out[i];
    }
    for (std::size_t i = 0; i < length; ++i) out[i] /= sum;
}

void float_log_softmax(const float* in, float* out, std::size_t length, float /*beta*/) {
    const float largest = *std::max_element(in, in + length);
    float sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += std::exp(in[i] - largest);
    const float log_of_sum = std::log(sum);
    for (std::size_t i = 0; i < length; ++i) out[i] = in[i] - largest - log_of_sum;
}

/// A function of each row of float32.
class FloatSoftmax final : public Kernel {
  public:
    using Function = void (*)(const float* in, float* out, std::size_t length, float beta);
    FloatSoftmax(std::string name, const SoftmaxShape& shape, Function function)
        : name_(std::move(name)), shape_(shape), function_(function) {}

    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        frame.pool.parallel_for(shape_.rows, 4096 / shape_.length + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    for (std::size_t row = begin; row < end; ++row)
                                        function_(frame.in<float>(0) + row * shape_.length,
                                                  frame.out<float>(0) + row * shape_.length,
                                                  shape_.length, shape_.beta);
                                });
        return {};
    }

  private:
    std::string name_;
    SoftmaxShape shape_;
    Function function_;
};

template <typename T>
PreparedKernel quantized_softmax(const OperatorView& op, const SoftmaxShape& shape,
                                 const PrepareOptions& options) {
    const auto in = REEF_TRY(softmax_input(op));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (!std::isfinite(in.scale * shape.beta))
        return fail(Cause::bad_input, "scale times beta is not finite");
    const SoftmaxTable table(in.scale, shape.beta);
    if (options.kernels == KernelSet::fast) return fast_softmax(shape, table, op.input(0).type);
    return std::make_unique<QuantizedSoftmax<T>>(shape, table, out);
}

Result<SoftmaxShape> rows_of(const OperatorView& op, float beta) {
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_shape(op.output(0), "output 0", input.shape));
    if (input.shape.empty() || input.shape.back() < 1)
        return fail(Cause::bad_input, "input 0 has no last axis to sum over");
    SoftmaxShape shape{.length = static_cast<std::size_t>(input.shape.back()), .beta = beta};
    shape.rows = static_cast<std::size_t>(input.element_count()) / shape.length;
    return shape;
}

}  // namespace

SoftmaxTable::SoftmaxTable(float input_scale, float beta) {
    const float step = -input_scale * beta;
    for (std::size_t i = 0; i < 256; ++i) {
        exponentials[i] = std::exp(step * static_cast<float>(255 - i));
        const auto bits = std::bit_cast<std::uint32_t>(exponentials[i]);
        for (std::size_t byte = 0; byte < 4; ++byte)
            bytes[byte][i] = static_cast<std::uint8_t>(bits >> (8 * byte));
    }
}

Result<SoftmaxShape> check_softmax(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::SoftmaxOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    if (!std::isfinite(given.beta) || given.beta < 0)
        return fail(Cause::bad_input, "beta is negative or not finite");
    return rows_of(op, given.beta);
}

Result<AffineParameters> softmax_input(const OperatorView& op) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (out.scale != 1.0F / 256 || out.zero_point != type_range(op.output(0).type).min)
        return fail(Cause::unsupported,
                    "the output's scale is not 1/256 with the lowest value as zero point");
    return in;
}

PreparedKernel prepare_softmax(const OperatorView& op, const PrepareOptions& options) {
    const SoftmaxShape shape = REEF_TRY(check_softmax(op));
    if (op.input(0).type == ElementType::uint8)
        return quantized_softmax<std::uint8_t>(op, shape, options);
    if (op.input(0).type == ElementType::int8)
        return quantized_softmax<std::int8_t>(op, shape, options);
    if (options.kernels == KernelSet::reference)
        return std::make_unique<FloatSoftmax>("softmax reference", shape, float_softmax);
    return std::make_unique<FloatSoftmax>("softmax fast " + std::string(simd_target()), shape,
                                          float_softmax_fast);
}

PreparedKernel prepare_log_softmax(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    const SoftmaxShape shape = REEF_TRY(rows_of(op, 1));
    if (options.kernels == KernelSet::reference)
        return std::make_unique<FloatSoftmax>("log_softmax reference", shape, float_log_softmax);
    return std::make_unique<FloatSoftmax>("log_softmax fast " + std::string(simd_target()), shape,
                                          float_log_softmax_fast);
}

}  // namespace reef::cpu
