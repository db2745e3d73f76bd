// MUL, DIV and FLOOR_DIV.
#include "cpu/reference/mul.h"

#include <algorithm>
#include <limits>

#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"
#include "cpu/reference/elementwise.h"

namespace reef::cpu {
namespace {

/// The Edge TPU's MUL.
template <typename T>
struct EdgetpuProduct {
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_a = 0, zero_b = 0;
    T operator()(T a, T b) const {
        return static_cast<T>(requantise((a - zero_a) * (b - zero_b), scale));
    }
};

template <typename T>
PreparedKernel edgetpu_product(const OperatorView& op, Broadcast broadcast,
                               model::Activation activation) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const std::int64_t size = op.output(0).element_count();
    if (op.input(0).element_count() != size ||
        (op.input(1).element_count() != size && op.input(1).element_count() != 1))
        return unknown_on_edgetpu("MUL with a broadcast other than of one second factor");
    return binary_kernel<T>(
        "mul reference", std::move(broadcast),
        EdgetpuProduct<T>{REEF_TRY(float_requantisation(activation, op.output(0))),
                          REEF_TRY(float_scale(a.scale * b.scale, out)), a.zero_point,
                          b.zero_point});
}

struct Int32Product {
    Limits<std::int32_t> clamp;
    std::int32_t operator()(std::int32_t a, std::int32_t b) const {
        // Overflow wraps.
        const auto product = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) *
                                                       static_cast<std::uint32_t>(b));
        return std::clamp(product, clamp.min, clamp.max);
    }
};

struct FloatProduct {
    Limits<float> clamp;
    float operator()(float a, float b) const {
        return std::min(std::max(a * b, clamp.min), clamp.max);
    }
};

struct FloatQuotient {
    Limits<float> clamp;
    float operator()(float a, float b) const {
        return std::min(std::max(a / b, clamp.min), clamp.max);
    }
};

template <typename T>
PreparedKernel quantized_product(const OperatorView& op, Broadcast broadcast,
                                 model::Activation activation, const PrepareOptions& options) {
    if (options.arithmetic == Arithmetic::edgetpu)
        return edgetpu_product<T>(op, std::move(broadcast), activation);
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    ProductParameters product;
    product.zero_a = a.zero_point;
    product.zero_b = b.zero_point;
    product.zero_out = out.zero_point;
    // TFLite multiplies and divides the three scales in float32.
    product.multiplier = REEF_TRY(checked_multiplier(a.scale * b.scale / out.scale));
    product.clamp = REEF_TRY(quantized_activation_range(activation, op.output(0)));
    if (options.kernels == KernelSet::fast)
        return binary_run_kernel<T>(
            "mul fast " + std::string(simd_target()), std::move(broadcast),
            [product](const auto... run) { mul_run_fast(run..., product); });
    return binary_kernel<T>("mul reference", std::move(broadcast), QuantizedProduct<T>{product});
}

/// The largest integer that is not above a / b.
class FloorDivKernel final : public Kernel {
  public:
    explicit FloorDivKernel(Broadcast broadcast) : broadcast_(std::move(broadcast)) {}
    [[nodiscard]] std::string name() const override { return "floor_div reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto* a = frame.in<std::int32_t>(0);
        const auto* b = frame.in<std::int32_t>(1);
        auto* out = frame.out<std::int32_t>(0);
        bool by_zero = false;
        bool overflows = false;
        broadcast_.each_run(0, broadcast_.size(),
                            [&](std::size_t o, std::size_t i, std::size_t j, std::size_t count) {
                                for (std::size_t k = 0; k < count; ++k) {
                                    const std::int32_t dividend = a[i + k * broadcast_.a_step()];
                                    const std::int32_t divisor = b[j + k * broadcast_.b_step()];
                                    by_zero |= divisor == 0;
                                    overflows |= divisor == -1 && dividend == smallest;
                                    out[o + k] = floor_div(dividend, divisor);
                                }
                            });
        if (by_zero) return fail(Cause::bad_input, "division by zero");
        if (overflows) return fail(Cause::bad_input, "-2147483648 / -1 does not fit int32");
        return {};
    }

  private:
    static constexpr std::int32_t smallest = std::numeric_limits<std::int32_t>::min();

    static std::int32_t floor_div(std::int32_t dividend, std::int32_t divisor) {
        if (divisor == 0 || (divisor == -1 && dividend == smallest)) return 0;
        const std::int32_t quotient = dividend / divisor;
        const bool rounded_up = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
        return rounded_up ? quotient - 1 : quotient;
    }

    Broadcast broadcast_;
};

}  // namespace

PreparedKernel prepare_mul(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::MulOptions>());
    auto broadcast = REEF_TRY(check_binary(
        op, {ElementType::uint8, ElementType::int8, ElementType::int32, ElementType::float32}));
    switch (op.output(0).type) {
        case ElementType::uint8:
            return quantized_product<std::uint8_t>(op, std::move(broadcast), given.activation,
                                                   options);
        case ElementType::int8:
            return quantized_product<std::int8_t>(op, std::move(broadcast), given.activation,
                                                  options);
        case ElementType::int32: {
            const auto clamp = REEF_TRY(int32_activation_range(given.activation));
            return binary_kernel<std::int32_t>("mul reference", std::move(broadcast),
                                               Int32Product{clamp});
        }
        default: {
            const auto clamp = REEF_TRY(float_activation_range(given.activation));
            return binary_kernel<float>("mul reference", std::move(broadcast), FloatProduct{clamp});
        }
    }
}

PreparedKernel prepare_div(const OperatorView& op, const PrepareOptions& /*options*/) {
    const auto given = REEF_TRY(op.options<model::DivOptions>());
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::float32}));
    const auto clamp = REEF_TRY(float_activation_range(given.activation));
    return binary_kernel<float>("div reference", std::move(broadcast), FloatQuotient{clamp});
}

PreparedKernel prepare_floor_div(const OperatorView& op, const PrepareOptions& /*options*/) {
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::int32}));
    return std::make_unique<FloorDivKernel>(std::move(broadcast));
}

}  // namespace reef::cpu
