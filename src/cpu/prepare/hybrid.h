// Convolutions of float32 activations and int8 weights, as files quantised by "dynamic range" have
// them: every run quantises the input by what it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpu/prepare/convolution.h"
#include "reef/base/result.h"

namespace reef::cpu {

struct HybridConvolution {
    /// Of float32, with `floats`; but its weights are int8.
    Convolution convolution;
    bool asymmetric = false;           ///< quantise_values(), of each image or row by itself
    std::vector<float> weight_scales;  ///< one, or one per output channel
    bool depthwise = false;            ///< how weights are laid out
};

/// Whether the operator has a float32 input and int8 weights.
[[nodiscard]] bool is_hybrid(const OperatorView& op);

// By the rules of TFLite 2.9. Precondition: is_hybrid(op). Errors: as of read_conv_2d() and its
// like; unsupported, besides, for weights with a zero point, for groups, for one scale of a
// depthwise filter of several channels, and for several scales of FULLY_CONNECTED.
[[nodiscard]] Result<HybridConvolution> read_hybrid_conv_2d(const OperatorView& op);
[[nodiscard]] Result<HybridConvolution> read_hybrid_depthwise_conv_2d(const OperatorView& op);
[[nodiscard]] Result<HybridConvolution> read_hybrid_fully_connected(const OperatorView& op);

/// The same in both sets of kernels. `op` is for its name.
[[nodiscard]] std::unique_ptr<Kernel> hybrid_kernel(std::string op, HybridConvolution hybrid);

/// TFLite's quantisation of float32 values to int8, less their zero point: -127 to 127 around 0, or
/// (asymmetric) 255 steps from the least to the greatest of the values and 0. Returns the scale; 1
/// where all values are 0. Errors: bad_input for values that are not finite, or so small that
/// steps of them are not.
[[nodiscard]] Result<float> quantise_values(std::span<const float> values, bool asymmetric,
                                            std::int16_t* steps);

}  // namespace reef::cpu
