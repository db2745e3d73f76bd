// Taps of a transposed convolution, which Reef's compiler makes an ordinary one of for each phase
// of the result.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reef::edgetpu {

/// Of one axis: the taps that pixels of a phase of the result see.
struct PhaseTaps {
    std::int32_t first = 0, stride = 1;  ///< of the whole kernel, in its order
    std::int32_t count = 0;
    std::int32_t front = 0;  ///< pixels in front of the image

    /// Of the convolution's taps, which are turned round. One without taps has one of zeros.
    [[nodiscard]] std::int32_t stored() const { return std::max(count, 1); }
    /// Of the whole kernel. Precondition: index < count.
    [[nodiscard]] std::int32_t tap(std::int32_t index) const {
        return first + stride * (count - 1 - index);
    }
};

/// `front`: pixels of the result in front of what the image's first one adds to.
[[nodiscard]] inline PhaseTaps taps_of_phase(std::int32_t phase, std::int32_t front,
                                             std::int32_t stride, std::int32_t kernel) {
    PhaseTaps taps{.first = (phase + front) % stride, .stride = stride};
    taps.count = taps.first < kernel ? (kernel - taps.first + stride - 1) / stride : 0;
    taps.front = taps.stored() - 1 - (phase + front) / stride;
    return taps;
}

}  // namespace reef::edgetpu
