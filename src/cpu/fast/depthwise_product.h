// Weighted sums over taps, channel by channel: the core of DEPTHWISE_CONV_2D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/fast/packed_depthwise.h"

namespace reef::cpu {

/// Consecutive output pixels of one row that have all their taps inside the input, or one pixel
/// anywhere: tap t of pixel p is at taps[t] + p * step (bytes), and has as many values as there are
/// packed channels.
struct DepthwiseRun {
    std::span<const std::byte* const> taps;
    const std::byte* widened = nullptr;  ///< weights
    std::size_t step = 0;
    /// Of several pixels: the columns of taps from one to the next, where those of a row of taps
    /// stand side by side; else 0.
    std::size_t columns = 0;
    std::size_t pixels = 1;
    std::uint8_t* out = nullptr;
    std::size_t out_stride = 0;  ///< in bytes
    float scale = 1;             ///< of the input, where outputs are float32
};

struct DepthwiseFunctions {
    const char* target = "";
    DepthwiseBlocks blocks;
    /// Writes the weights that runs want widened; `to` is aligned for the widest vectors.
    void (*widen)(const PackedDepthwise& packed, std::byte* to) = nullptr;
    void (*run_uint8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
    void (*run_int8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
    /// Of a hybrid operator: inputs are int16 in [-255, 255], outputs float32.
    void (*run_steps)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
};

/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const DepthwiseFunctions* depthwise_functions();

}  // namespace reef::cpu
