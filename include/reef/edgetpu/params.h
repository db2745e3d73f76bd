// The Edge TPU's parameter blob as a codec: a layer's weights, biases and scales to the bytes that
// the chip's parameter memory wants, and back.
//
// Nothing here allocates or opens files, so that weights can be replaced between two inferences.
// Source of every layout: byte-for-byte comparison of compiled models with their plain sources.
//
// Convolutions and fully connected layers lie in groups of up to 64 output channels ("lanes"),
// depthwise convolutions in groups of 4. A group is
//     [float32 multiplier[N]] [int32 bias[N]] [int32 weight zero point[N]] weights
// with weights as uint8 [kernel h][kernel w][in channels / 4, rounded up][N][4] for convolutions
// and [kernel h][kernel w][4 out][4 in] for depthwise ones (off the diagonal: the zero point).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::edgetpu {

/// Layers, tables and constants start at multiples of this in the blob.
inline constexpr std::size_t parameter_alignment = 64;
/// Output channels that the chip computes side by side.
inline constexpr std::uint32_t lanes_per_group = 64;

enum class LayerKind : std::uint8_t {
    convolution,      ///< weights [out][kernel h][kernel w][in], as TFLite has them
    depthwise,        ///< weights [kernel h][kernel w][channel], depth multiplier 1
    widening,         ///< depthwise of one input channel: weights [kernel h][kernel w][out]
    multiplied,       ///< depthwise with any multiplier, as Reef's compiler alone stores it
    fully_connected,  ///< weights [out][in]
};

struct LayerShape {
    LayerKind kind = LayerKind::convolution;
    std::uint32_t kernel_h = 1, kernel_w = 1;
    std::uint32_t in_channels =
        0;  ///< depthwise: as out_channels; widening: 1; multiplied: divides it
    std::uint32_t out_channels = 0;

    [[nodiscard]] std::uint64_t taps() const { return std::uint64_t{kernel_h} * kernel_w; }
    /// Stored in rows of four results, each of which takes a byte of its own channel.
    [[nodiscard]] bool is_diagonal() const {
        return kind == LayerKind::depthwise || kind == LayerKind::multiplied;
    }
    /// Elements of the plain weights.
    [[nodiscard]] std::uint64_t weight_count() const;
    friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

/// Which vectors precede the weights of a group.
struct LayerVectors {
    bool multipliers = false;  ///< per-channel scales that differ
    bool biases = false;       ///< a bias that is not all zero
    bool zero_points = false;  ///< per-channel scales; else the instructions hold the zero point
    friend bool operator==(const LayerVectors&, const LayerVectors&) = default;
};

/// Where everything of one layer lies, in bytes from its start. Made by layout_of().
struct LayerLayout {
    LayerShape shape;
    LayerVectors vectors;
    std::uint32_t lanes = 0;  ///< N, a multiple of 4
    std::uint32_t groups = 0;
    std::size_t multipliers = 0, biases = 0, zero_points = 0;  ///< offsets in a group
    std::size_t weights = 0;                                   ///< offset in a group
    std::size_t group_bytes = 0;
    std::size_t size_bytes = 0;  ///< of the layer, without the gap to the next one's alignment

    /// Offset in the layer. Preconditions: indices in range; `in` is 0 for depthwise layers.
    [[nodiscard]] std::size_t weight_offset(std::uint32_t out, std::uint64_t tap,
                                            std::uint32_t in) const;
};

/// `least_lanes`: of layers that are not diagonal; the vendor's have 4 for up to 4 channels of an
/// image, Reef's 16. Errors: bad_argument for an empty dimension, unsupported above 1 GiB.
[[nodiscard]] Result<LayerLayout> layout_of(const LayerShape& shape, const LayerVectors& vectors,
                                            std::uint32_t least_lanes = 4);

/// How plain weights of one byte are to be read. The chip knows unsigned weights only: int8 is
/// stored with its sign bit flipped and a zero point of 128.
enum class WeightType : std::uint8_t { uint8, int8 };

/// A layer's plain values. Weights in the order of LayerKind; the other spans hold one value per
/// output channel and are empty when the layout lacks that vector.
struct LayerValues {
    WeightType type = WeightType::int8;
    Bytes weights = {};
    std::int32_t weight_zero_point = 0;  ///< in the domain of `type`
    std::span<const std::int32_t> biases = {};
    std::span<const float> multipliers = {};
};

/// Writes layout.size_bytes bytes, padding included. Errors: bad_argument when a span does not have
/// the size that the layout needs.
[[nodiscard]] Status encode_layer(const LayerLayout& layout, const LayerValues& values,
                                  MutableBytes blob);

/// The same from real weights: q = round(w * (1 / scale)) in float32, halves away from zero,
/// limited to [-127, 127] (TFLite's symmetric int8), with one scale per output channel or a single
/// one. `biases` and `multipliers` as in LayerValues. Errors: bad_argument, too, for a weight that
/// is infinite or not a number; the blob is as it was then.
struct RealLayerValues {
    std::span<const float> weights;
    std::span<const float> scales;  ///< positive and finite
    std::span<const std::int32_t> biases = {};
    std::span<const float> multipliers = {};
};
[[nodiscard]] Status encode_layer(const LayerLayout& layout, const RealLayerValues& values,
                                  MutableBytes blob);
/// How many of the weights are limited. Preconditions: those of a layer that encode_layer() takes.
[[nodiscard]] std::size_t limited_weights(const LayerLayout& layout, const RealLayerValues& values);

/// Where decode_layer() writes; sizes as in LayerValues.
struct LayerStorage {
    WeightType type = WeightType::int8;
    MutableBytes weights;
    std::span<std::int32_t> biases;
    std::span<float> multipliers;
    std::span<std::int32_t> zero_points;  ///< in the domain of `type`
};
/// Reads what encode_layer() wrote; padding is not looked at. Errors as there.
[[nodiscard]] Status decode_layer(const LayerLayout& layout, Bytes blob,
                                  const LayerStorage& storage);

// The requantisation values, in the float32 expressions that the compiler uses.

/// f32(f32(in * weight) * f32(1 / out)).
[[nodiscard]] float layer_multiplier(float in_scale, float weight_scale, float out_scale);

/// The clamp before the output zero point is added: real limits over the output scale.
struct ClampLimits {
    float min = 0;
    float max = 0;
    friend bool operator==(const ClampLimits&, const ClampLimits&) = default;
};
enum class ActivationLimits : std::uint8_t { none, relu, relu6 };
/// `zero_point`, `quantized_min` and `quantized_max` in one domain (uint8: 0 and 255).
[[nodiscard]] ClampLimits clamp_limits(float out_scale, std::int32_t zero_point,
                                       std::int32_t quantized_min, std::int32_t quantized_max,
                                       ActivationLimits activation);

/// The factors of an addition: x * first + y * second stands for real sums when x and y have the
/// two scales. The best rational approximation of first_scale / second_scale whose numerator and
/// denominator have 15 bits.
struct SumFactors {
    std::uint16_t first = 1;
    std::uint16_t second = 1;
    friend bool operator==(const SumFactors&, const SumFactors&) = default;
};
[[nodiscard]] SumFactors sum_factors(float first_scale, float second_scale);
/// f32(f32(first_scale / first) * f32(1 / out)): what the sum is multiplied with.
[[nodiscard]] float sum_multiplier(float first_scale, const SumFactors& factors, float out_scale);

// Constants of other operators.

/// SOFTMAX over `channels` logits, channels % 4 != 0: tables of one 32-bit value per channel, 4 in
/// each line of 64 bytes. Uint8 networks have one more line with 1.0.
[[nodiscard]] std::size_t softmax_table_size(std::uint32_t channels, bool unit_line);
[[nodiscard]] Status encode_softmax_table(std::uint32_t channels, float scale, bool unit_line,
                                          MutableBytes blob);

/// The scale that a table of that many channels holds. Precondition: `blob` has the table's size.
[[nodiscard]] float softmax_table_scale(std::uint32_t channels, Bytes blob);

/// An output channel of a selection that is zero.
inline constexpr std::uint32_t no_source = 0xffffffff;
/// Zeros and ones that make output channel i of input channel sources[i], on unsigned numbers with
/// a zero point of 0: a layer of one tap whose biases, if it has any, are zeros. Errors:
/// bad_argument when there are other channels than the layout has.
[[nodiscard]] Status encode_selection(const LayerLayout& layout,
                                      std::span<const std::uint32_t> sources, MutableBytes blob);

/// MUL of a constant per channel: layer_multiplier() of each, four in every line of 64 bytes.
[[nodiscard]] std::size_t channel_multipliers_size(std::uint32_t channels);
[[nodiscard]] Status encode_channel_multipliers(std::span<const float> multipliers,
                                                MutableBytes blob);

/// SUB of a constant per channel: the negated constant, uint8 domain, as int32.
[[nodiscard]] std::size_t subtrahend_size(std::uint32_t channels);
[[nodiscard]] Status encode_subtrahend(WeightType type, Bytes constant, MutableBytes blob);

}  // namespace reef::edgetpu
