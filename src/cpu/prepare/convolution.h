// What CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV share: one checked
// description of a quantised convolution, from which the plain and the fast kernels both work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/prepare/fixed_point.h"
#include "cpu/prepare/float_requantisation.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"
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

/// The way from sums to values of an arithmetic that works in float32.
struct FloatStage {
    FloatRequantisation requantise;
    std::vector<float> scales;  ///< one per output channel
};

/// What float32 tensors have in place of scales and zero points.
struct FloatSums {
    std::vector<float> bias;  ///< one per output channel
    Limits<float> clamp;
};

/// out[c] = clamp(rescale(bias[c] + sum (x - input_zero) * (w - weight_zero)) + output_zero), the
/// sum and the bias modulo 2^32.
struct Convolution {
    /// Of input, weights and output: uint8, int8 or, by TFLite's rules, float32.
    ElementType type = ElementType::uint8;
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
    /// Set by ConvolutionRules; then ties, multipliers and clamp mean nothing.
    std::optional<FloatStage> float_stage;
    /// Set for float32, and for float32 activations on int8 weights; then nothing between `weights`
    /// and here means anything.
    std::optional<FloatSums> floats;

    [[nodiscard]] std::int64_t pixels() const { return batch * h.out * w.out; }
    [[nodiscard]] std::int64_t groups() const { return in_channels / depth; }
};

/// How another arithmetic than TFLite's brings sums to values.
struct ConvolutionRules {
    /// Refuses what it does not compute; shapes are known then, scales not yet. May be null.
    Status (*check)(const Convolution& c) = nullptr;
    /// `weights`: their scales, one, or one per output channel.
    Result<FloatStage> (*stage)(const OperatorView& op, model::Activation activation,
                                std::span<const float> weights, const Convolution& c) = nullptr;
};

/// The operator's description, by TFLite's rules when there are no others. Errors: unsupported for
/// types other than uint8, int8 and, by TFLite's rules, float32, weights or bias computed at run
/// time, int8 convolution weights with a zero point, and shuffled weights; bad_input where the
/// shapes or quantisation parameters contradict each other.
[[nodiscard]] Result<Convolution> read_conv_2d(const OperatorView& op,
                                               const ConvolutionRules* rules = nullptr);
[[nodiscard]] Result<Convolution> read_depthwise_conv_2d(const OperatorView& op,
                                                         const ConvolutionRules* rules = nullptr);
/// A 1x1 convolution whose batch is the number of rows. Per-channel weight scales are applied per
/// output channel, as TFLite does from 2.14 on (2.9 returns the zero point everywhere).
[[nodiscard]] Result<Convolution> read_fully_connected(const OperatorView& op,
                                                       const ConvolutionRules* rules = nullptr);

/// The convolution that it transposes: h and w go from the operator's output (`in`) to its input
/// (`out`). Weights are out_channels x taps_h x taps_w x depth. Errors, besides: an input that is
/// not of the size which that convolution gives.
[[nodiscard]] Result<Convolution> read_transpose_conv(const OperatorView& op,
                                                      const ConvolutionRules* rules = nullptr);

/// The kernel of the set that `options` ask for.
[[nodiscard]] std::unique_ptr<Kernel> conv_2d_kernel(Convolution c, const PrepareOptions& options);
[[nodiscard]] std::unique_ptr<Kernel> depthwise_conv_2d_kernel(Convolution c,
                                                               const PrepareOptions& options);
[[nodiscard]] std::unique_ptr<Kernel> fully_connected_kernel(Convolution c,
                                                             const PrepareOptions& options);
[[nodiscard]] std::unique_ptr<Kernel> transpose_conv_kernel(Convolution c,
                                                            const PrepareOptions& options);

[[nodiscard]] std::unique_ptr<Kernel> reference_conv_2d(Convolution convolution);
[[nodiscard]] std::unique_ptr<Kernel> reference_depthwise_conv_2d(Convolution convolution);
[[nodiscard]] std::unique_ptr<Kernel> reference_transpose_conv(Convolution convolution);
[[nodiscard]] std::unique_ptr<Kernel> reference_fully_connected(Convolution convolution);

/// Vectorised, for runs on a pool of `threads`; the same bytes, or float32 within the same bound.
/// Convolutions in groups, and machines without vectors, get the reference kernel.
[[nodiscard]] std::unique_ptr<Kernel> fast_conv_2d(Convolution convolution, int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_depthwise_conv_2d(Convolution convolution, int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_fully_connected(Convolution convolution, int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_transpose_conv(Convolution convolution, int threads);

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

/// Float32 activations and int8 weights, as files quantised by "dynamic range" have them.
struct HybridConvolution {
    /// Its type is that of the weights, int8; and it has `floats`.
    Convolution convolution;
    bool asymmetric = false;           ///< the input is quantised to all 255 steps; else around 0
    std::vector<float> weight_scales;  ///< one, or one per output channel
    bool depthwise = false;            ///< how weights are laid out
    /// Weights are depth x out_channels, which fast_hybrid() alone takes: it turns them.
    bool depth_first = false;
};

/// Whether the operator has a float32 input and int8 weights.
[[nodiscard]] bool is_hybrid(const OperatorView& op);

// By the rules of TFLite 2.9. Precondition: is_hybrid(op). Errors: as of read_conv_2d() and its
// like; unsupported, besides, for weights with a zero point, for groups, for one scale of a
// depthwise filter of several channels, and for several scales of FULLY_CONNECTED.
[[nodiscard]] Result<HybridConvolution> read_hybrid_conv_2d(const OperatorView& op);
[[nodiscard]] Result<HybridConvolution> read_hybrid_depthwise_conv_2d(const OperatorView& op);
[[nodiscard]] Result<HybridConvolution> read_hybrid_fully_connected(const OperatorView& op);

/// The kernel of the set that `options` ask for. `op` is for its name.
[[nodiscard]] std::unique_ptr<Kernel> hybrid_kernel(std::string op, HybridConvolution hybrid,
                                                    const PrepareOptions& options);
[[nodiscard]] std::unique_ptr<Kernel> reference_hybrid(std::string op, HybridConvolution hybrid);
/// Vectorised, the same bits; machines without vectors get the reference kernel.
[[nodiscard]] std::unique_ptr<Kernel> fast_hybrid(std::string op, HybridConvolution hybrid,
                                                  int threads);
/// Of DEPTHWISE_CONV_2D.
[[nodiscard]] std::unique_ptr<Kernel> fast_depthwise_hybrid(std::string op,
                                                            HybridConvolution hybrid, int threads);

}  // namespace reef::cpu
