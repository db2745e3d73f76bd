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
    bool assume_round = false;  ///< CVT_ROUND of the output converter rounds ties away from zero
    bool assume_nrdma = false;  ///< BN's factors by channel come from memory
    /// Sums are computed with a convolution that makes one of their operands, which is then neither
    /// rounded nor stored: fewer bytes moved, other results than TFLite's by one.
    bool fuse_sums = false;
};

}  // namespace reef::rk3588
