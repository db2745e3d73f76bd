// From the accumulators' scale to the output's: what the DPU's stages multiply and shift with.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/options.h"

namespace reef::rk3588::lowering {

/// acc -> BS: (acc + bias) * factor >> factor_shift, ties to even -> BN: times a power of two, and
/// limits -> OUT_CVT: * scale >> shift, ties to even or away from zero, + zero.
struct Requantisation {
    bool multiplies = false;              ///< BS has a factor
    std::int32_t factor = 0;              ///< of all channels, unless there are factors
    std::vector<std::int16_t> factors{};  ///< by channel, from memory
    std::int32_t factor_shift = 0;        ///< 0 to 63
    std::vector<std::int16_t> powers{};   ///< BN: by channel, from memory
    std::int32_t scale = 0;               ///< 15 bits
    std::int32_t shift = 0;               ///< 0 to 62
    bool away = false;                    ///< CVT_ROUND
    std::int32_t zero = 0;                ///< int8 domain
    bool relu = false;                    ///< not below zero
    std::optional<std::int32_t> most{};   ///< not above it, in front of OUT_CVT
    double worst_gain_error = 0;          ///< of a channel, relative
    bool short_groups = false;            ///< operands without the correction's place

    /// Of 8 channels in memory, where there are factors.
    [[nodiscard]] std::size_t operand_group_bytes() const {
        return spec::operand_group_bytes - (short_groups ? spec::operand_correction_bytes : 0);
    }
};

/// Constants of 15 bits: multiplier ~ scale / 2^shift.
struct ScaleAndShift {
    std::int32_t scale = 0, shift = 0;
};
[[nodiscard]] ScaleAndShift nearest_scale(double multiplier);

/// Two factors whose product is nearest to the multiplier.
[[nodiscard]] Requantisation two_factors(double multiplier);

/// Distances from the zero point that results may have, one as likely as the other.
struct ResultRange {
    std::int32_t least = -128, most = 127;
};

/// One rounding of the product, or two as TFLite's kernels have them. `multipliers`: one, or one
/// for each channel. Nothing: no constants of the chip express them.
[[nodiscard]] std::optional<Requantisation> requantisation_of(std::span<const double> multipliers,
                                                              const Options& options,
                                                              const ResultRange& results = {});

/// Accumulators that a channel may have, with their biases: `up` above 0, `down` below.
struct Reach {
    std::int64_t up = 0, down = 0;
};
/// How far a channel's result lies at most from the exact product, in steps of the output, because
/// the chip's constants are not the multiplier. `results`: those that are not cut off.
[[nodiscard]] double largest_error(const Requantisation& r, std::size_t channel, double multiplier,
                                   const Reach& reach, const ResultRange& results);
/// TFLite rounds twice and is off by 3/4 at most, the chip by 1/2: with less than this the two are
/// 1 apart at most. Against one rounding a whole step is as little.
[[nodiscard]] constexpr double most_error(Options::Requant requant) {
    return requant == Options::Requant::tflite ? 0.75 : 1;
}

/// The value that OUT_CVT makes of `value`, in front of its limits.
[[nodiscard]] std::int64_t converted(std::int64_t value, const Requantisation& r);

/// Limits the results to [low, high], int8 domain; `low` is -128 or the zero point.
void limit(Requantisation& r, std::int32_t low, std::int32_t high);

/// The gains of two operands over one converter.
struct SumGains {
    std::int32_t a = 0, b = 0;
    ScaleAndShift converter;
    std::int32_t shift_a = 0;  ///< behind the first gain, to the nearest, ties to even
};

}  // namespace reef::rk3588::lowering
