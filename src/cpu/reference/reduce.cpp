// SUM, REDUCE_MAX and REDUCE_MIN over any axes.
//
// SUM of uint8 and int8 between two quantisations goes through float32 and keeps the low eight bits
// of what comes out; with one quantisation it is the sum of the stored values in the element's own
// type. Both wrap, as TFLite 2.9's do.
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/reduction.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

struct Unchanged {
    template <typename T>
    T operator()(T value) const {
        return value;
    }
};

template <typename T>
struct RescaledSum {
    float scale = 1;  ///< the input's over the output's
    float bias = 0;   ///< - input zero point * scale * count
    std::int32_t zero_point = 0;

    T operator()(std::int32_t sum) const {
        const float steps = std::round(static_cast<float>(sum) * scale + bias);
        // What does not fit int32 becomes its smallest value, as in x86-64's conversion.
        const bool fits = steps >= -0x1p31F && steps < 0x1p31F;
        const std::uint32_t whole =
            fits ? static_cast<std::uint32_t>(static_cast<std::int32_t>(steps))
                 : std::uint32_t{1} << 31;
        return static_cast<T>(whole + static_cast<std::uint32_t>(zero_point));
    }
};

template <typename T>
PreparedKernel own_type_sum(Reduction reduction) {
    using Unsigned = std::make_unsigned_t<T>;
    return reduction_kernel<T>("sum", std::move(reduction), Unsigned{0}, AddElement<Unsigned>{},
                               Unchanged{});
}

template <typename T>
PreparedKernel reduced_sum(const OperatorView& op, Reduction reduction) {
    if (REEF_TRY(same_quantization(op.input(0), op.output(0))))
        return own_type_sum<T>(std::move(reduction));
    if (sizeof(T) > 1)
        return fail(Cause::unsupported,
                    "SUM of int16 to another scale or zero point, which TFLite refuses");
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float scale = in.scale / out.scale;
    const float bias =
        -static_cast<float>(in.zero_point) * scale * static_cast<float>(reduction.count);
    return sum_kernel<T>("sum", std::move(reduction), RescaledSum<T>{scale, bias, out.zero_point});
}

/// `Wins`: whether an element takes the place of the best so far; a NaN never does.
template <typename Wins>
PreparedKernel prepare_extremum(const OperatorView& op, const char* name, bool starts_low) {
    Reduction reduction = REEF_TRY(
        check_reduction(op, {ElementType::uint8, ElementType::int8, ElementType::int16,
                             ElementType::int32, ElementType::int64, ElementType::float32}));
    if (*size_of(op.input(0).type) < 4 && !REEF_TRY(same_quantization(op.input(0), op.output(0))))
        return fail(Cause::unsupported, "input and output of different scales or zero points");
    return with_type_of(op.input(0).type, "input 0", [&]<typename T>(T) -> PreparedKernel {
        const T start =
            starts_low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
        const auto better = [](T best, T element) {
            return Wins{}(element, best) ? element : best;
        };
        return reduction_kernel<T>(name, std::move(reduction), start, better, Unchanged{});
    });
}

}  // namespace

PreparedKernel prepare_sum(const OperatorView& op, const PrepareOptions& /*options*/) {
    Reduction reduction = REEF_TRY(
        check_reduction(op, {ElementType::uint8, ElementType::int8, ElementType::int16,
                             ElementType::int32, ElementType::int64, ElementType::float32}));
    switch (op.input(0).type) {
        case ElementType::uint8:
            return reduced_sum<std::uint8_t>(op, std::move(reduction));
        case ElementType::int8:
            return reduced_sum<std::int8_t>(op, std::move(reduction));
        case ElementType::int16:
            return reduced_sum<std::int16_t>(op, std::move(reduction));
        case ElementType::int32:
            return own_type_sum<std::int32_t>(std::move(reduction));
        case ElementType::int64:
            return own_type_sum<std::int64_t>(std::move(reduction));
        default:
            return reduction_kernel<float>("sum", std::move(reduction), 0.0F, AddElement<float>{},
                                           Unchanged{});
    }
}

PreparedKernel prepare_reduce_max(const OperatorView& op, const PrepareOptions& /*options*/) {
    return prepare_extremum<std::greater<>>(op, "reduce_max", true);
}

PreparedKernel prepare_reduce_min(const OperatorView& op, const PrepareOptions& /*options*/) {
    return prepare_extremum<std::less<>>(op, "reduce_min", false);
}

}  // namespace reef::cpu
