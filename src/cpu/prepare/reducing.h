// From sums to the quantised means of TFLite's four arithmetics, shared by MEAN's plain and its
// vectorised form. reference/mean.cpp says which one an operator has.
//
// `sum`: the stored values' sum, modulo 2^32; no zero point is subtracted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "cpu/prepare/fixed_point.h"
#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// Height and width of uint8: one factor for scales and count, the zero points in a rounded bias.
struct ScaledMean {
    Multiplier multiplier;
    std::int32_t bias = 0;

    [[nodiscard]] std::uint8_t operator()(std::int32_t sum) const {
        const auto scaled =
            static_cast<std::uint32_t>(multiply_by_quantized_multiplier(sum, multiplier));
        const auto value = static_cast<std::int32_t>(scaled + static_cast<std::uint32_t>(bias));
        return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
    }
};

/// Height and width of signed elements: the scaled sum, divided with halves away from zero.
template <typename T>
struct DividedMean {
    Multiplier multiplier;
    std::int32_t zero_points = 0;  ///< count times the input's
    std::int32_t count = 1;
    std::int32_t zero_point = 0;

    [[nodiscard]] T operator()(std::int32_t sum) const {
        const std::int32_t scaled =
            multiply_by_quantized_multiplier(difference(sum, zero_points), multiplier);
        const std::int32_t half = scaled > 0 ? count / 2 : -(count / 2);
        const std::int32_t mean = difference(scaled, -half) / count;
        return static_cast<T>(std::clamp<std::int32_t>(difference(mean, -zero_point),
                                                       std::numeric_limits<T>::min(),
                                                       std::numeric_limits<T>::max()));
    }

  private:
    /// Modulo 2^32.
    static std::int32_t difference(std::int32_t a, std::int32_t b) {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) -
                                         static_cast<std::uint32_t>(b));
    }
};

/// The first two in float32, in units of 2^-16: of x, the sum less `zero_points`, the integer below
/// x * factor + start, of a negative x less twice the offset, unless that lies next to an integer
/// (StepWords in cpu/fast/step_words-inl.h). The offset is what roundings in front of the last one
/// add.
struct MeanInFloat {
    static constexpr float one = 0x1p16F;
    /// That is off by less than so many units, and begins as many higher. Of up to 384 steps,
    /// 1.5 * 2^24 units, and a bias of 256: 1.5 for the factor, 1 each for the product, the sum and
    /// what that starts from, half each for its whole units and for what is subtracted.
    static constexpr std::uint16_t most_off = 6;

    bool pays = false;
    std::int32_t zero_points = 0;
    float factor = 0, start = 0;
    std::int32_t twice_the_offset = 0;
};
/// Of `count` bytes.
[[nodiscard]] MeanInFloat in_float(const ScaledMean& mean, std::size_t count);
[[nodiscard]] MeanInFloat in_float(const DividedMean<std::int8_t>& mean, std::size_t count);

template <typename Mean>
inline constexpr bool has_float_form =
    std::is_same_v<Mean, ScaledMean> || std::is_same_v<Mean, DividedMean<std::int8_t>>;

/// One quantisation for input and output: the fraction is dropped.
template <typename T>
struct TruncatedMean {
    std::int32_t count = 1;
    [[nodiscard]] T operator()(std::int32_t sum) const { return static_cast<T>(sum / count); }
};

/// All else: float32, in TFLite's order of operations.
template <typename T>
struct FloatMean {
    float scale = 1;  ///< the input's over the output's
    float bias = 0;   ///< - input zero point * scale
    std::int32_t zero_point = 0;
    float count = 1;
    [[nodiscard]] T operator()(std::int32_t sum) const {
        const float mean = static_cast<float>(sum) / count;
        const float steps = std::round(mean * scale + bias) + static_cast<float>(zero_point);
        return static_cast<T>(
            std::clamp<float>(steps, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
};

/// Input outer x reduced x inner, output outer x inner.
struct MeanShape {
    std::size_t outer = 1;
    std::size_t reduced = 1;
    std::size_t inner = 1;

    /// Of an outer element, each of so many inner ones, the last of what is left.
    static constexpr std::size_t block_channels = 256;
    [[nodiscard]] std::size_t blocks() const { return (inner - 1) / block_channels + 1; }
};

/// Vectorised over `inner`, for uint8 and int8 and the means above.
template <typename T, typename Mean>
[[nodiscard]] std::unique_ptr<Kernel> fast_mean(const MeanShape& shape, const Mean& mean);

/// Of float32, summed in input order as the plain kernel does.
[[nodiscard]] std::unique_ptr<Kernel> fast_float_mean(const MeanShape& shape);

}  // namespace reef::cpu
