#include "cpu/fast/float_depthwise.h"

#include <algorithm>
#include <cstring>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_depthwise.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/aligned_array.h"
#include "cpu/fast/channel_runs-inl.h"
#include "reef/base/file.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const FloatDepthwiseFunctions* target_float_depthwise() {
    return nullptr;
}

#else
namespace {

/// kPixels pixels at a time share the loads of weights.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kPixels>
HWY_INLINE void sum_taps(const FloatDepthwise& packed, const DepthwiseRun& run, std::size_t channel,
                         std::size_t pixel) {
    const hn::CappedTag<float, kLanes> d;
    const float* HWY_RESTRICT bias = packed.bias.get() + channel;
    const float* HWY_RESTRICT weights =
        reinterpret_cast<const float*>(packed.weights.get()) + channel;
    const std::size_t first = pixel * run.step + channel * sizeof(float);
    hn::Vec<decltype(d)> sums[kPixels][kVectors];
    REEF_UNROLL for (std::size_t p = 0; p < kPixels; ++p) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[p][v] =
            hn::LoadU(d, bias + v * kLanes);
    }
    for (std::size_t t = 0; t < packed.taps; ++t, weights += packed.channels) {
        const std::byte* tap = run.taps[t] + first;
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            const auto weight = hn::LoadU(d, weights + v * kLanes);
            REEF_UNROLL for (std::size_t p = 0; p < kPixels; ++p) {
                const auto* from = reinterpret_cast<const float*>(tap + p * run.step);
                sums[p][v] = hn::MulAdd(hn::LoadU(d, from + v * kLanes), weight, sums[p][v]);
            }
        }
    }
    std::uint8_t* out = run.out + pixel * run.out_stride;
    REEF_UNROLL for (std::size_t p = 0; p < kPixels; ++p, out += run.out_stride) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
            hn::StoreU(clamp_floats(d, sums[p][v], packed.clamp), d,
                       reinterpret_cast<float*>(out) + channel + v * kLanes);
    }
}

template <std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE void sum_pixels(const FloatDepthwise& packed, const DepthwiseRun& run,
                             std::size_t channel) {
    constexpr std::size_t at_once = 4;
    std::size_t p = 0;
    for (; p + at_once <= run.pixels; p += at_once)
        sum_taps<kLanes, kVectors, at_once>(packed, run, channel, p);
    for (; p < run.pixels; ++p) sum_taps<kLanes, kVectors, 1>(packed, run, channel, p);
}

/// All channels; the last block may compute some a second time.
template <std::size_t kLanes>
void sum_channels(const FloatDepthwise& packed, const DepthwiseRun& run) {
    if (packed.channels < kLanes) {
        if constexpr (kLanes > 1) sum_channels<(kLanes > 4 ? kLanes / 2 : 1)>(packed, run);
        return;
    }
    std::size_t c = 0;
    for (; c + 2 * kLanes <= packed.channels; c += 2 * kLanes)
        sum_pixels<kLanes, 2>(packed, run, c);
    for (; c + kLanes <= packed.channels; c += kLanes) sum_pixels<kLanes, 1>(packed, run, c);
    if (c < packed.channels) sum_pixels<kLanes, 1>(packed, run, packed.channels - kLanes);
}

}  // namespace

const FloatDepthwiseFunctions* target_float_depthwise() {
    constexpr std::size_t lanes = HWY_MAX_BYTES / sizeof(float);
    static const FloatDepthwiseFunctions functions{.target = hwy::TargetName(HWY_TARGET),
                                                   .run = sum_channels<lanes>};
    return &functions;
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_float_depthwise);

const FloatDepthwiseFunctions* float_depthwise_functions() {
    return HWY_DYNAMIC_DISPATCH(target_float_depthwise)();
}

FloatDepthwise lay_out_float_depthwise(const Convolution& c) {
    return {.taps = static_cast<std::size_t>(c.h.taps * c.w.taps),
            .channels = static_cast<std::size_t>(c.out_channels),
            .weights = {},
            .bias = {},
            .clamp = c.floats->clamp};
}

void pack_float_depthwise(const Convolution& c, FloatDepthwise& packed) {
    packed.bias = aligned_array<float>(packed.channels);
    std::ranges::copy(c.floats->bias, packed.bias.get());
    const Bytes weights = c.weights.view();
    packed.weights =
        share_packed(c.weights, {PackingForm::Kind::float_depthwise, {}}, weights.size(),
                     [&](std::byte* to) { std::memcpy(to, weights.data(), weights.size()); });
    will_not_read(c.weights);
}

}  // namespace reef::cpu
#endif
