// What CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED share: one checked description of a quantised
// convolution, from which the plain and the fast kernels both work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/fixed_point.h"
#include "cpu/float_requantisation.h"
#include "cpu/kernel.h"
#include "cpu/quantized.h"
#include "reef/base/result.h"

namespace reef::cpu {

/// One spatial axis: output o and tap k read the input at o * stride + k * dilation - pad; outside
/// [0, in) they read the input's zero point.
struct WindowAxis {
    std::int64_t in = 1;
    std::int64_t out = 1;
    std::int64_t taps = 1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t pad = 0;

    [[nodiscard]] std::int64_t first(std::int64_t o) const { return o * stride - pad; }
    [[nodiscard]] bool contains(std::int64_t position) const {
        return position >= 0 && position < in;
    }
};

/// How the second rounding of a rescaled sum treats ties: TFLite's matrix products (CONV_2D,
/// FULLY_CONNECTED) take them upwards, DEPTHWISE_CONV_2D away from zero (fixed_point.h).
enum class Ties : std::uint8_t { upwards, away_from_zero };

/// The Edge TPU's way from sums to values.
struct FloatStage {
    FloatRequantisation requantise;
    std::vector<float> scales;  ///< one per output channel
};

/// out[c] = clamp(rescale(bias[c] + sum (x - input_zero) * (w - weight_zero)) + output_zero), the
/// sum and the bias modulo 2^32.
struct Convolution {
    ElementType type = ElementType::uint8;  ///< of input, weights and output: uint8 or int8
    std::int64_t batch = 1;
    WindowAxis h;
    WindowAxis w;
    std::int64_t in_channels = 1;
    std::int64_t out_channels = 1;
    /// CONV_2D: input channels that one output channel reads. DEPTHWISE_CONV_2D: 1.
    std::int64_t depth = 1;
    /// DEPTHWISE_CONV_2D: output channels per input channel.
    std::int64_t depth_multiplier = 1;

    /// CONV_2D: out_channels x taps_h x taps_w x depth. DEPTHWISE_CONV_2D: taps_h x taps_w x
    /// out_channels. FULLY_CONNECTED: out_channels x depth.
    SharedBytes weights;
    std::int32_t input_zero = 0;
    std::int32_t weight_zero = 0;
    std::int32_t output_zero = 0;
    ClampRange clamp;
    Ties ties = Ties::upwards;
    std::vector<std::int32_t> bias;       ///< one per output channel; 0 where the file has none
    std::vector<Multiplier> multipliers;  ///< one per output channel
    /// Set for Arithmetic::edgetpu; then ties, multipliers and clamp mean nothing.
    std::optional<FloatStage> float_stage;

    [[nodiscard]] std::int64_t pixels() const { return batch * h.out * w.out; }
    [[nodiscard]] std::int64_t groups() const { return in_channels / depth; }
};

/// The operator's description. Errors: unsupported for types other than uint8 and int8 (float32
/// included), weights or bias computed at run time, int8 convolution weights with a zero point, and
/// shuffled weights; bad_input where the shapes or quantisation parameters contradict each other.
[[nodiscard]] Result<Convolution> read_conv_2d(const OperatorView& op,
                                               Arithmetic arithmetic = Arithmetic::tflite);
[[nodiscard]] Result<Convolution> read_depthwise_conv_2d(
    const OperatorView& op, Arithmetic arithmetic = Arithmetic::tflite);
/// A 1x1 convolution whose batch is the number of rows. Per-channel weight scales are applied per
/// output channel, as TFLite does from 2.14 on (2.9 ignores all but the first).
[[nodiscard]] Result<Convolution> read_fully_connected(const OperatorView& op,
                                                       Arithmetic arithmetic = Arithmetic::tflite);

[[nodiscard]] std::unique_ptr<Kernel> reference_conv_2d(Convolution convolution);
[[nodiscard]] std::unique_ptr<Kernel> reference_depthwise_conv_2d(Convolution convolution);
[[nodiscard]] std::unique_ptr<Kernel> reference_fully_connected(Convolution convolution);

/// Vectorised, for runs on a pool of `threads`; the same bytes. Convolutions in groups, and
/// machines without vectors, get the reference kernel.
[[nodiscard]] std::unique_ptr<Kernel> fast_conv_2d(Convolution convolution, int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_depthwise_conv_2d(Convolution convolution, int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_fully_connected(Convolution convolution, int threads);

/// Accumulator of output channel c to its 8-bit value; T is the element type.
template <typename T>
[[nodiscard]] T requantize(const Convolution& convolution, std::int64_t c, std::uint32_t sum) {
    const auto channel = static_cast<std::size_t>(c);
    const auto total =
        static_cast<std::int32_t>(sum + static_cast<std::uint32_t>(convolution.bias[channel]));
    if (const auto& stage = convolution.float_stage)
        return static_cast<T>(stage->requantise(total, stage->scales[channel]));
    const Multiplier m = convolution.multipliers[channel];
    const std::int32_t scaled = convolution.ties == Ties::upwards
                                    ? multiply_in_matrix_product(total, m)
                                    : multiply_by_quantized_multiplier(total, m);
    const std::int64_t value = std::int64_t{scaled} + convolution.output_zero;
    return static_cast<T>(
        std::clamp<std::int64_t>(value, convolution.clamp.min, convolution.clamp.max));
}

}  // namespace reef::cpu
