// What kernels on quantised tensors share: checked parameters and clamp ranges.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cpu/prepare/fixed_point.h"
#include "cpu/prepare/kernel.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// real = scale * (q - zero_point)
struct AffineParameters {
    float scale = 1;
    std::int32_t zero_point = 0;
    friend bool operator==(const AffineParameters&, const AffineParameters&) = default;
};

/// The one scale and zero point of a tensor. Errors (bad_input): not quantised, several scales, a
/// scale that is not a positive finite number, a zero point outside the element type's range.
[[nodiscard]] Result<AffineParameters> per_tensor_parameters(const model::Tensor& tensor);

/// Whether both tensors have one scale and zero point, or none. Errors: those of
/// per_tensor_parameters() when only one of them is quantised.
[[nodiscard]] Result<bool> same_quantization(const model::Tensor& a, const model::Tensor& b);

/// Zero in input 0: each byte of it, a zero point in 8 bits. Errors: unsupported when output 0 is
/// quantised differently, or in more bits with another zero point than 0.
[[nodiscard]] Result<std::byte> padding_byte(const OperatorView& op);

/// quantize_multiplier for values from a file. Errors (bad_input): negative, infinite, NaN, or
/// 2^31 and above, where TFLite's left shift is undefined.
[[nodiscard]] Result<Multiplier> checked_multiplier(double real);

/// The same for factors of either sign (a slope that files may make negative): a negative one has
/// the magnitude's multiplier, negated.
[[nodiscard]] Result<Multiplier> checked_signed_multiplier(double real);

/// checked_multiplier without the limit: from 2^31 on only the low five bits of the left shift
/// count, as in x86-64's shift instruction, which TFLite's MUL meets unchecked. The shift is at
/// most 31.
[[nodiscard]] Result<Multiplier> wrapping_multiplier(double real);

/// Smallest and largest value of an integer type of up to 32 bits.
struct ClampRange {
    std::int32_t min = 0;
    std::int32_t max = 0;
    friend bool operator==(const ClampRange&, const ClampRange&) = default;
};
/// Precondition: uint8, int8, int16, uint16 or int32.
[[nodiscard]] ClampRange type_range(ElementType type);

/// The values of a quantised output that the fused activation lets through (TFLite's
/// CalculateActivationRangeQuantized: uint8, int8, int16). Errors: unsupported for TANH and
/// SIGN_BIT, which TFLite ignores there.
[[nodiscard]] Result<ClampRange> quantized_activation_range(model::Activation activation,
                                                            const model::Tensor& output);

template <typename T>
struct Limits {
    T min;
    T max;
};
/// The same for float and unquantised integer outputs (TFLite's CalculateActivationRange);
/// activation none gives the lowest and largest value.
[[nodiscard]] Result<Limits<float>> float_activation_range(model::Activation activation);
[[nodiscard]] Result<Limits<std::int32_t>> int32_activation_range(model::Activation activation);
[[nodiscard]] Result<Limits<std::int64_t>> int64_activation_range(model::Activation activation);

/// Error (unsupported) naming `what` ("input 0") and the types when tensor.type is none of them,
/// with what the model may be converted to instead.
[[nodiscard]] Status expect_type(const model::Tensor& tensor, const char* what,
                                 std::initializer_list<ElementType> types);

/// Error (unsupported) unless the tensor has the type and shape that the kernel computes.
/// The message names both shapes.
[[nodiscard]] Status expect_shape(const model::Tensor& tensor, const char* what,
                                  const std::vector<std::int32_t>& computed);

/// A copy of the elements of a constant int32 input (axes, shapes). Errors: unsupported when it is
/// computed at run time, bad_input when it is not int32.
[[nodiscard]] Result<std::vector<std::int32_t>> constant_int32(const OperatorView& op,
                                                               std::size_t input, const char* what);

/// The same of an int32 or int64 input.
[[nodiscard]] Result<std::vector<std::int64_t>> constant_integers(const OperatorView& op,
                                                                  std::size_t input,
                                                                  const char* what);

/// An axis in [0, rank), counted from the end when negative.
[[nodiscard]] Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

}  // namespace reef::cpu
