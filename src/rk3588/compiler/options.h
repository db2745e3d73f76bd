// How a program for the RK3588 is to be made.
#pragma once

#include <cstdint>

namespace reef::rk3588 {

struct Options {
    enum class Requant : std::uint8_t {
        tflite,  ///< two roundings, as TFLite's kernels
        exact,   ///< one rounding of the product
    };
    Requant requant = Requant::tflite;
    /// Forms that no stream of a real RK3588 has shown, and that are used only when asked for.
    bool assume_round = false;   ///< CVT_ROUND of the output converter rounds ties away from zero
    bool assume_nrdma = false;   ///< BN's factors by channel come from memory
    bool assume_ppu = false;     ///< the PPU takes int8: the greatest of windows
    bool assume_lut = false;     ///< functions of bytes go through the DPU's tables
    bool assume_sumlut = false;  ///< sums of a convolution do, too
    /// Operands by channel of depthwise convolutions have no place for the correction: 48 bytes for
    /// 8 channels.
    bool assume_groups48 = false;
    /// Planes of all channels that the arrays make are written behind a convolution's results:
    /// there is room for them.
    bool assume_planes = false;
    /// Sums are computed with a convolution that makes one of their operands, which is then neither
    /// rounded nor stored: fewer bytes moved, other results than TFLite's by one.
    bool fuse_sums = false;
    /// The rows of images of few channels stand beside each other in an atom's lanes.
    bool fold_images = true;
    std::int32_t cores = 1;  ///< that share a program
    /// Of the chip's SRAM: what moves the most bytes stands in so many first ones of the
    /// activations.
    std::uint32_t sram_bytes = 0;
};

}  // namespace reef::rk3588
