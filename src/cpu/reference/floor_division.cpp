// FLOOR_DIV and FLOOR_MOD.
#include <cmath>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

template <typename T>
bool quotient_overflows(T dividend, T divisor) {
    return std::is_integral_v<T> && divisor == T(-1) &&
           dividend == std::numeric_limits<T>::lowest();
}

/// The largest integer that is not above a / b. Precondition: the divisor is not 0.
struct FloorQuotient {
    static constexpr bool may_overflow = true;
    template <typename T>
    T operator()(T dividend, T divisor) const {
        if constexpr (std::is_floating_point_v<T>) {
            // Divided in float64, as TFLite does: a float32 quotient may round up to a whole
            // number.
            return static_cast<T>(
                std::floor(static_cast<double>(dividend) / static_cast<double>(divisor)));
        } else {
            const T quotient = dividend / divisor;
            const bool rounded_up = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
            return rounded_up ? quotient - 1 : quotient;
        }
    }
};

/// The remainder with the divisor's sign.
struct FloorRemainder {
    static constexpr bool may_overflow = false;
    template <typename T>
    T operator()(T dividend, T divisor) const {
        T remainder = 0;
        if constexpr (std::is_floating_point_v<T>) {
            remainder = std::fmod(dividend, divisor);
        } else {
            if (divisor == -1) return 0;  // the machine's division of the smallest number traps
            remainder = dividend % divisor;
        }
        const bool other_side = remainder != 0 && (remainder < 0) != (divisor < 0);
        return other_side ? remainder + divisor : remainder;
    }
};

template <typename T, typename Function>
class FloorKernel final : public Kernel {
  public:
    FloorKernel(const char* name, Broadcast broadcast)
        : name_(name), broadcast_(std::move(broadcast)) {}
    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* a = frame.in<T>(0);
        const T* b = frame.in<T>(1);
        T* out = frame.out<T>(0);
        bool by_zero = false;
        bool overflows = false;
        broadcast_.each_run(0, broadcast_.size(),
                            [&](std::size_t o, std::size_t i, std::size_t j, std::size_t count) {
                                for (std::size_t k = 0; k < count; ++k) {
                                    const T dividend = a[i + k * broadcast_.a_step()];
                                    const T divisor = b[j + k * broadcast_.b_step()];
                                    const bool zero = divisor == 0;
                                    const bool overflow = Function::may_overflow &&
                                                          quotient_overflows(dividend, divisor);
                                    by_zero |= zero;
                                    overflows |= overflow;
                                    out[o + k] =
                                        zero || overflow ? T{0} : Function{}(dividend, divisor);
                                }
                            });
        if (by_zero) return fail(Cause::bad_input, "division by zero");
        if (overflows) return fail(Cause::bad_input, "the smallest number / -1 does not fit");
        return {};
    }

  private:
    const char* name_;
    Broadcast broadcast_;
};

}  // namespace

PreparedKernel prepare_floor_div(const OperatorView& op, const PrepareOptions& /*options*/) {
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::int32, ElementType::float32}));
    if (op.output(0).type == ElementType::float32)
        return std::make_unique<FloorKernel<float, FloorQuotient>>("floor_div",
                                                                   std::move(broadcast));
    return std::make_unique<FloorKernel<std::int32_t, FloorQuotient>>("floor_div",
                                                                      std::move(broadcast));
}

PreparedKernel prepare_floor_mod(const OperatorView& op, const PrepareOptions& /*options*/) {
    auto broadcast =
        REEF_TRY(check_binary(op, {ElementType::int32, ElementType::int64, ElementType::float32}));
    switch (op.output(0).type) {
        case ElementType::int32:
            return std::make_unique<FloorKernel<std::int32_t, FloorRemainder>>(
                "floor_mod", std::move(broadcast));
        case ElementType::int64:
            return std::make_unique<FloorKernel<std::int64_t, FloorRemainder>>(
                "floor_mod", std::move(broadcast));
        default:
            return std::make_unique<FloorKernel<float, FloorRemainder>>("floor_mod",
                                                                        std::move(broadcast));
    }
}

}  // namespace reef::cpu
