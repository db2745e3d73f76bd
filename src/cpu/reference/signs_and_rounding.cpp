// Functions of one number that need no series: ABS, NEG, SQUARE, FLOOR, CEIL, ROUND and
// LOGICAL_NOT.
#include <cmath>
#include <type_traits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

Status check_one(const OperatorView& op, std::initializer_list<ElementType> types) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", types));
    return expect_type(op.output(0), "output 0", {op.input(0).type});
}

template <typename Function>
PreparedKernel of_floats(const OperatorView& op, const char* name, const PrepareOptions& options,
                         FloatFunction fast, Function function) {
    REEF_CHECK(check_one(op, {ElementType::float32}));
    if (options.kernels == KernelSet::fast) return fast_float_function(name, op, fast);
    return unary_kernel<float, float>(name, op, options.kernels, function);
}

/// The smallest integer has no opposite and stays.
struct Opposite {
    template <typename T>
    T operator()(T value) const {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(std::make_unsigned_t<T>{0} -
                                  static_cast<std::make_unsigned_t<T>>(value));
        else
            return -value;
    }
};

/// TFLite's: of -1/2 and what lies above it, below 0, it is 0, not -0 as the C library has it. Of
/// -0 it is -0.
float nearest_even(float value) {
    const float below = std::floor(value);
    const float rest = value - below;
    const bool goes_down = rest < 0.5F || (rest == 0.5F && std::fmod(below, 2.0F) == 0);
    return goes_down ? below : below + 1.0F;
}

}  // namespace

PreparedKernel prepare_abs(const OperatorView& op, const PrepareOptions& options) {
    return of_floats(op, "abs", options, FloatFunction::magnitude,
                     [](float value) { return std::abs(value); });
}

PreparedKernel prepare_neg(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(check_one(op, {ElementType::int32, ElementType::int64, ElementType::float32}));
    if (options.kernels == KernelSet::fast && op.input(0).type == ElementType::float32)
        return fast_float_function("neg", op, FloatFunction::opposite);
    return with_type_of(op.input(0).type, "input 0", [&]<typename T>(T) -> PreparedKernel {
        return unary_kernel<T, T>("neg", op, options.kernels, Opposite{});
    });
}

PreparedKernel prepare_square(const OperatorView& op, const PrepareOptions& options) {
    return of_floats(op, "square", options, FloatFunction::square,
                     [](float value) { return value * value; });
}

PreparedKernel prepare_floor(const OperatorView& op, const PrepareOptions& options) {
    return of_floats(op, "floor", options, FloatFunction::floor,
                     [](float value) { return std::floor(value); });
}

PreparedKernel prepare_ceil(const OperatorView& op, const PrepareOptions& options) {
    return of_floats(op, "ceil", options, FloatFunction::ceil,
                     [](float value) { return std::ceil(value); });
}

PreparedKernel prepare_round(const OperatorView& op, const PrepareOptions& options) {
    return of_floats(op, "round", options, FloatFunction::nearest_even, nearest_even);
}

PreparedKernel prepare_logical_not(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(check_one(op, {ElementType::boolean}));
    return unary_kernel<std::uint8_t, std::uint8_t>(
        "logical_not", op, options.kernels,
        [](std::uint8_t value) { return static_cast<std::uint8_t>(value == 0); });
}

}  // namespace reef::cpu
