// A network as an ONNX file, for ONNX Runtime.
//
// Operators of float32 are themselves. Every quantised operator stands between DequantizeLinear and
// QuantizeLinear, as ONNX Runtime's quantisation tools write it: its optimiser makes its integer
// kernels of the three. What only moves, chooses or compares bytes works on the bytes.
#pragma once

#include <string>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

/// The file. Quantised int8 activations are uint8 there, 128 more, inputs and outputs, too, and
/// uint8 weights int8: ONNX Runtime's kernels for x86 multiply uint8 by int8. The numbers are the
/// same. Tensors of rank 4 are NCHW inside, inputs and outputs as in the model. `graph`: of the
/// model, with all shapes known. Nodes of operator 3 have names that begin with "op3_". Errors:
/// unsupported for what has no ONNX form, with the operator as its place.
[[nodiscard]] Result<std::string> onnx_file(const model::Model& model,
                                            const model::Subgraph& graph);

/// The network of one node that gives its input back: what a run costs that computes nothing.
[[nodiscard]] std::string onnx_identity(const model::Subgraph& graph);

}  // namespace reef::peers
