#include "edgetpu/compiler/transposed.h"

#include <algorithm>
#include <memory>

#include "edgetpu/params/phase_taps.h"

namespace reef::edgetpu::lowering {
namespace {

/// An ordinary convolution for each phase of the result, its taps turned round. One without taps
/// has one of zeros.
compiler::Convolution of_phase(const compiler::Convolution& whole, const PhaseTaps& y,
                               const PhaseTaps& x) {
    compiler::Convolution conv = whole;
    conv.window = {.kernel_h = y.stored(), .kernel_w = x.stored(), .top = y.front, .left = x.front};
    const auto ins = static_cast<std::size_t>(whole.in_channels);
    const auto kh = conv.window.kernel_h, kw = conv.window.kernel_w;
    const auto outs = static_cast<std::size_t>(whole.out_channels);
    auto weights = std::make_shared<std::vector<std::byte>>(
        outs * static_cast<std::size_t>(kh * kw) * ins, static_cast<std::byte>(whole.weight_zero));
    const Bytes all = whole.weights.view();
    for (std::size_t o = 0; o < outs; ++o)
        for (std::int32_t v = 0; v < y.count; ++v)
            for (std::int32_t u = 0; u < x.count; ++u) {
                const auto from = (o * static_cast<std::size_t>(whole.window.kernel_h) +
                                   static_cast<std::size_t>(y.tap(v))) *
                                      static_cast<std::size_t>(whole.window.kernel_w) +
                                  static_cast<std::size_t>(x.tap(u));
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
