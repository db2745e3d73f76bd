// Weighted sums over taps of float32, channel by channel.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>

#include "cpu/fast/depthwise_product.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// The bias of every channel, then for each tap its weight of every channel.
struct FloatDepthwise {
    std::size_t taps = 0;
    std::size_t channels = 0;
    hwy::AlignedFreeUniquePtr<float[]> values;
    Limits<float> clamp{};

    [[nodiscard]] std::size_t count() const { return (taps + 1) * channels; }
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
