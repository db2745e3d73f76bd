#include "edgetpu/compiler/transposed.h"

#include <algorithm>
#include <memory>

namespace reef::edgetpu::lowering {
namespace {

/// The taps of one axis that pixels of a phase of a transposed convolution see.
struct PhaseTaps {
    std::int32_t first = 0, stride = 1;  ///< of the whole kernel, in its order
    std::int32_t count = 0;
    std::int32_t front = 0;  ///< pixels in front of the image
};
PhaseTaps taps_of_phase(std::int32_t phase, std::int32_t front, std::int32_t stride,
                        std::int32_t kernel) {
    PhaseTaps taps{.first = (phase + front) % stride, .stride = stride};
    taps.count = taps.first < kernel ? (kernel - taps.first + stride - 1) / stride : 0;
    taps.front = std::max(taps.count, 1) - 1 - (phase + front) / stride;
    return taps;
}

/// An ordinary convolution for each phase of the result, its taps turned round. One without taps
/// has one of zeros.
compiler::Convolution of_phase(const compiler::Convolution& whole, const PhaseTaps& y,
                               const PhaseTaps& x) {
    compiler::Convolution conv = whole;
    conv.window = {.kernel_h = std::max(y.count, 1),
                   .kernel_w = std::max(x.count, 1),
                   .top = y.front,
                   .left = x.front};
    const auto ins = static_cast<std::size_t>(whole.in_channels);
    const auto kh = conv.window.kernel_h, kw = conv.window.kernel_w;
    const auto outs = static_cast<std::size_t>(whole.out_channels);
    auto weights = std::make_shared<std::vector<std::byte>>(
        outs * static_cast<std::size_t>(kh * kw) * ins, static_cast<std::byte>(whole.weight_zero));
    const Bytes all = whole.weights.view();
    for (std::size_t o = 0; o < outs; ++o)
        for (std::int32_t v = 0; v < y.count; ++v)
            for (std::int32_t u = 0; u < x.count; ++u) {
                const std::int32_t row = y.first + y.stride * (y.count - 1 - v);
                const std::int32_t column = x.first + x.stride * (x.count - 1 - u);
                const auto from = (o * static_cast<std::size_t>(whole.window.kernel_h) +
                                   static_cast<std::size_t>(row)) *
                                      static_cast<std::size_t>(whole.window.kernel_w) +
                                  static_cast<std::size_t>(column);
                const auto to =
                    o * static_cast<std::size_t>(kh * kw) + static_cast<std::size_t>(v * kw + u);
                std::ranges::copy(all.subspan(from * ins, ins),
                                  weights->begin() + static_cast<std::ptrdiff_t>(to * ins));
            }
    conv.weights = SharedBytes(*weights, weights);
    return conv;
}

}  // namespace

std::vector<std::pair<compiler::Convolution, Phase>> phases_of(const compiler::Convolution& whole) {
    const Window& w = whole.window;
    std::vector<std::pair<compiler::Convolution, Phase>> phases;
    for (std::int32_t y = 0; y < w.stride_h; ++y)
        for (std::int32_t x = 0; x < w.stride_w; ++x)
            phases.emplace_back(of_phase(whole, taps_of_phase(y, w.top, w.stride_h, w.kernel_h),
                                         taps_of_phase(x, w.left, w.stride_w, w.kernel_w)),
                                Phase{w.stride_h, w.stride_w, y, x});
    return phases;
}

}  // namespace reef::edgetpu::lowering
