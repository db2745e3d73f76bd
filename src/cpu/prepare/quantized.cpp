#include "cpu/prepare/quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace reef::cpu {
namespace {

template <typename T>
ClampRange range_of() {
    return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

Result<std::int32_t> quantize(float value, AffineParameters p) {
    const float steps = std::round(value / p.scale);
    if (!(steps >= -0x1p31F && steps < 0x1p31F))
        return fail(Cause::bad_input,
                    fmt::format("the output's scale {} is too small for its activation", p.scale));
    const std::int64_t q = static_cast<std::int64_t>(steps) + p.zero_point;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(
        q, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

/// The clamp of an activation in real numbers.
struct RealClamp {
    bool below = false;
    bool above = false;
    std::int32_t min = 0;
    std::int32_t max = 0;
};

Result<RealClamp> real_clamp(model::Activation activation) {
    switch (activation) {
        case model::Activation::none:
            return RealClamp{};
        case model::Activation::relu:
            return RealClamp{.below = true};
        case model::Activation::relu_n1_to_1:
            return RealClamp{.below = true, .above = true, .min = -1, .max = 1};
        case model::Activation::relu6:
            return RealClamp{.below = true, .above = true, .min = 0, .max = 6};
        case model::Activation::tanh:
            return fail(Cause::unsupported, "fused activation TANH");
        case model::Activation::sign_bit:
            return fail(Cause::unsupported, "fused activation SIGN_BIT");
    }
    return fail(Cause::bad_input,
                fmt::format("fused activation {} is not known", static_cast<int>(activation)));
}

template <typename T>
Result<Limits<T>> plain_range(model::Activation activation) {
    const RealClamp clamp = REEF_TRY(real_clamp(activation));
    return Limits<T>{clamp.below ? static_cast<T>(clamp.min) : std::numeric_limits<T>::lowest(),
                     clamp.above ? static_cast<T>(clamp.max) : std::numeric_limits<T>::max()};
}

/// What a converter can make of the network instead.
std::string conversion_to(std::initializer_list<ElementType> types) {
    const auto has = [&](ElementType type) {
        return std::ranges::find(types, type) != types.end();
    };
    const bool floats = has(ElementType::float32);
    if (has(ElementType::int8))
        return floats ? "convert the model to float32, or quantise it to int8"
                      : "quantise the model to int8";
    if (floats) return "convert the model with this operator in float32";
    return "convert the model with another type here";
}

}  // namespace

Result<AffineParameters> per_tensor_parameters(const model::Tensor& tensor) {
    if (!tensor.quantization || !tensor.quantization->quantized())
        return fail(Cause::bad_input, fmt::format("tensor '{}' is not quantised", tensor.name));
    const model::Quantization& q = *tensor.quantization;
    if (q.scale.size() != 1 || q.zero_point.size() != 1)
        return fail(Cause::bad_input, fmt::format("tensor '{}' has {} scales where one is expected",
                                                  tensor.name, q.scale.size()));
    if (!std::isfinite(q.scale[0]) || q.scale[0] <= 0)
        return fail(Cause::bad_input, fmt::format("tensor '{}' has scale {}, not a positive number",
                                                  tensor.name, q.scale[0]));
    // Kernels multiply by it, and nothing times infinity is no number.
    if (!std::isfinite(1 / q.scale[0]))
        return fail(Cause::bad_input,
                    fmt::format("tensor '{}' has scale {}, whose reciprocal is beyond float32",
                                tensor.name, q.scale[0]));
    const ClampRange range = type_range(tensor.type);
    if (q.zero_point[0] < range.min || q.zero_point[0] > range.max)
        return fail(Cause::bad_input,
                    fmt::format("tensor '{}' has zero point {}, outside {}", tensor.name,
                                q.zero_point[0], name_of(tensor.type)));
    return AffineParameters{q.scale[0], static_cast<std::int32_t>(q.zero_point[0])};
}

Result<bool> same_quantization(const model::Tensor& a, const model::Tensor& b) {
    const auto plain = [](const model::Tensor& tensor) {
        return !tensor.quantization || !tensor.quantization->quantized();
    };
    if (plain(a) && plain(b)) return true;
    return REEF_TRY(per_tensor_parameters(a)) == REEF_TRY(per_tensor_parameters(b));
}

Result<std::byte> padding_byte(const OperatorView& op) {
    const model::Tensor& input = op.input(0);
    if (!input.quantization || !input.quantization->quantized()) return std::byte{0};
    const auto in = REEF_TRY(per_tensor_parameters(input));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (in != out) return fail(Cause::unsupported, "input and output are quantised differently");
    const bool bytes = input.type == ElementType::uint8 || input.type == ElementType::int8;
    if (!bytes && in.zero_point != 0)
        return fail(Cause::unsupported,
                    fmt::format("a zero point of {} in {}", in.zero_point, name_of(input.type)));
    return static_cast<std::byte>(in.zero_point);
}

Result<Multiplier> checked_multiplier(double real) {
    if (!std::isfinite(real) || real < 0)
        return fail(Cause::bad_input, fmt::format("a rescaling factor of {}", real));
    const Multiplier multiplier = quantize_multiplier(real);
    if (multiplier.shift > 30)
        return fail(Cause::bad_input,
                    fmt::format("a rescaling factor of {} overflows 32 bits", real));
    return multiplier;
}

Result<Multiplier> checked_signed_multiplier(double real) {
    Multiplier multiplier = REEF_TRY(checked_multiplier(std::abs(real)));
    if (real < 0) multiplier.multiplier = -multiplier.multiplier;
    return multiplier;
}

Result<Multiplier> wrapping_multiplier(double real) {
    if (!std::isfinite(real) || real < 0)
        return fail(Cause::bad_input, fmt::format("a rescaling factor of {}", real));
    Multiplier multiplier = quantize_multiplier(real);
    if (multiplier.shift > 0) multiplier.shift &= 31;
    return multiplier;
}

ClampRange type_range(ElementType type) {
    switch (type) {
        case ElementType::uint8:
            return range_of<std::uint8_t>();
        case ElementType::int8:
            return range_of<std::int8_t>();
        case ElementType::int16:
            return range_of<std::int16_t>();
        case ElementType::uint16:
            return range_of<std::uint16_t>();
        default:
            return range_of<std::int32_t>();
    }
}

Result<ClampRange> quantized_activation_range(model::Activation activation,
                                              const model::Tensor& output) {
    REEF_CHECK(expect_type(output, "output 0",
                           {ElementType::uint8, ElementType::int8, ElementType::int16}));
    const RealClamp clamp = REEF_TRY(real_clamp(activation));
    const AffineParameters p = REEF_TRY(per_tensor_parameters(output));
    ClampRange range = type_range(output.type);
    if (clamp.below)
        range.min = std::max(range.min, REEF_TRY(quantize(static_cast<float>(clamp.min), p)));
    if (clamp.above)
        range.max = std::min(range.max, REEF_TRY(quantize(static_cast<float>(clamp.max), p)));
    return range;
}

Result<Limits<float>> float_activation_range(model::Activation activation) {
    return plain_range<float>(activation);
}

Result<Limits<std::int32_t>> int32_activation_range(model::Activation activation) {
    return plain_range<std::int32_t>(activation);
}

Result<Limits<std::int64_t>> int64_activation_range(model::Activation activation) {
    return plain_range<std::int64_t>(activation);
}

Status expect_type(const model::Tensor& tensor, const char* what,
                   std::initializer_list<ElementType> types) {
    if (std::ranges::find(types, tensor.type) != types.end()) return {};
    std::string list;
    for (const ElementType type : types) {
        if (!list.empty()) list += ", ";
        list += name_of(type);
    }
    return fail(Cause::unsupported,
                fmt::format("{} is {}, supported: {}", what, name_of(tensor.type), list), {},
                conversion_to(types));
}

Status expect_shape(const model::Tensor& tensor, const char* what,
                    const std::vector<std::int32_t>& computed) {
    if (tensor.shape == computed) return {};
    return fail(Cause::bad_input,
                fmt::format("{} is declared as {}, the operator computes {}", what,
                            model::shape_text(tensor.shape), model::shape_text(computed)));
}

Result<std::vector<std::int32_t>> constant_int32(const OperatorView& op, std::size_t input,
                                                 const char* what) {
    const model::Tensor& tensor = op.input(input);
    if (tensor.type != ElementType::int32)
        return fail(Cause::bad_input,
                    fmt::format("{} is {}, not int32", what, name_of(tensor.type)));
    std::vector<std::int32_t> values(static_cast<std::size_t>(tensor.element_count()));
    if (values.empty()) return values;
    const Bytes bytes = op.constant(input);
    if (bytes.empty())
        return fail(Cause::unsupported, fmt::format("{} is not constant", what), {},
                    "make it a constant of the model");
    assert(bytes.size() >= values.size() * sizeof(std::int32_t));
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::int32_t));
    return values;
}

Result<std::vector<std::int64_t>> constant_integers(const OperatorView& op, std::size_t input,
                                                    const char* what) {
    const model::Tensor& tensor = op.input(input);
    if (tensor.type != ElementType::int64) {
        const auto narrow = REEF_TRY(constant_int32(op, input, what));
        return std::vector<std::int64_t>(narrow.begin(), narrow.end());
    }
    std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.element_count()));
    if (values.empty()) return values;
    const Bytes bytes = op.constant(input);
    if (bytes.empty())
        return fail(Cause::unsupported, fmt::format("{} is not constant", what), {},
                    "make it a constant of the model");
    assert(bytes.size() >= values.size() * sizeof(std::int64_t));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(std::int64_t));
    return values;
}

Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
    const auto signed_rank = static_cast<std::int64_t>(rank);
    const std::int64_t resolved = axis < 0 ? axis + signed_rank : axis;
    if (resolved < 0 || resolved >= signed_rank)
        return fail(Cause::bad_input,
                    fmt::format("axis {} of a tensor with {} dimensions", axis, rank));
    return static_cast<std::size_t>(resolved);
}

}  // namespace reef::cpu
