// CAST and SQRT.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

/// Integers wrap to narrower ones. Floats lose their fraction and become 32 bits, or 64 where the
/// type has them, which then wrap; those outside them and NaN, which TFLite leaves to the machine,
/// become the lowest, as x86-64 has it.
template <typename In, typename Out>
Out cast(In value) {
    if constexpr (std::is_same_v<In, float> && std::is_integral_v<Out>) {
        constexpr bool fits =
            sizeof(Out) < sizeof(std::int32_t) || std::is_same_v<Out, std::int32_t>;
        using Whole = std::conditional_t<fits, std::int32_t, std::int64_t>;
        constexpr auto lowest = std::numeric_limits<Whole>::min();
        constexpr auto end = -static_cast<float>(lowest);
        return static_cast<Out>(value >= -end && value < end ? static_cast<Whole>(value) : lowest);
    } else {
        return static_cast<Out>(value);
    }
}

}  // namespace

PreparedKernel prepare_cast(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    return with_type_of(op.input(0).type, "input 0", [&]<typename In>(In) -> PreparedKernel {
        return with_type_of(
            op.output(0).type, "output 0", [&]<typename Out>(Out) -> PreparedKernel {
                return unary_kernel<In, Out>("cast", op, options.kernels,
                                             [](In value) { return cast<In, Out>(value); });
            });
    });
}

PreparedKernel prepare_sqrt(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    if (options.kernels == KernelSet::fast)
        return fast_float_function("sqrt", op, FloatFunction::root);
    return unary_kernel<float, float>("sqrt", op, options.kernels,
                                      [](float value) { return std::sqrt(value); });
}

}  // namespace reef::cpu
