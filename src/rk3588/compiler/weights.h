// Weights and operands as the chip reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reef/base/bytes.h"
#include "rk3588/compiler/buffer_plan.h"

namespace reef::rk3588::lowering {

/// Of a kernel's weights without their zero point.
struct WeightSum {
    std::int64_t sum = 0;
    std::int64_t magnitude = 0;  ///< the sum of their absolute values
};
/// For each output channel.
[[nodiscard]] std::vector<WeightSum> weight_sums(const compiler::Convolution& conv);

/// int8, [kernel / 32][channel / 32][y][x][kernel % 32][channel % 32], depthwise
/// [channel / 64][y][x][channel % 64]. `weights`: uint8 as compiler::Convolution has them. Lanes
/// behind the last channel hold `zero` (int8 domain), kernels behind the last one 0.
[[nodiscard]] std::vector<std::byte> packed_weights(const ConvolutionShape& shape, Bytes weights,
                                                    std::int32_t zero);

/// int32 for each channel, up to whole steps of the arrays.
[[nodiscard]] std::vector<std::byte> packed_biases(std::span<const std::int32_t> biases);

/// For each 8 channels, in `group_bytes`: their biases, the corrections (unused) where there is
/// room for them, their factors. Factors behind the last channel are 1: a group of zeros would
/// silence its channels.
[[nodiscard]] std::vector<std::byte> packed_operands(std::span<const std::int32_t> biases,
                                                     std::span<const std::int16_t> factors,
                                                     std::size_t group_bytes);

/// int16 for each channel, up to whole groups of 8.
[[nodiscard]] std::vector<std::byte> packed_powers(std::span<const std::int16_t> powers);

}  // namespace reef::rk3588::lowering
