// Weighted sums over taps of float32, channel by channel.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>

#include "cpu/fast/depthwise_product.h"
#include "cpu/fast/shared_packing.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// For each tap its weight of every channel.
struct FloatDepthwise {
    std::size_t taps = 0;
    std::size_t channels = 0;
    PackedBytes weights;
    hwy::AlignedFreeUniquePtr<float[]> bias;
    Limits<float> clamp{};

    [[nodiscard]] std::size_t packed_bytes() const { return (taps + 1) * channels * sizeof(float); }
};

struct FloatDepthwiseFunctions {
    const char* target = "";
    /// Addresses and steps of the run are those of floats, in bytes. Every value is summed in the
    /// order of the taps, whatever the run.
    void (*run)(const FloatDepthwise& packed, const DepthwiseRun& run) = nullptr;
};

[[nodiscard]] FloatDepthwise lay_out_float_depthwise(const Convolution& c);
void pack_float_depthwise(const Convolution& c, FloatDepthwise& packed);

/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const FloatDepthwiseFunctions* float_depthwise_functions();

}  // namespace reef::cpu
