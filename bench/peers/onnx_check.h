// Holds the ONNX form of every operator to Reef's kernels.
#pragma once

namespace reef::peers {

/// Writes every sample of an operator as ONNX and, where ONNX Runtime is, compares what comes out
/// of both on random input. Prints what has no ONNX form and what differs. False when something is
/// more than a step away, or a convolution stays float32.
[[nodiscard]] bool check_onnx();

}  // namespace reef::peers
