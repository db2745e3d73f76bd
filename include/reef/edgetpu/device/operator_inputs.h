// What a model's run gives its compiled operator, for who runs that operator alone.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/device/layer_binding.h"
#include "reef/edgetpu/package.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// An operator's tensors in its own order, and which of them are the layers of its program. State
/// is among the inputs; a run changes it.
struct OperatorTensors {
    std::vector<std::vector<std::byte>> inputs;
    std::vector<std::vector<std::byte>> outputs;  ///< zeros
    LayerBinding binding;

    /// Makes binding.inputs() and binding.outputs() views of these tensors.
    void bind();

  private:
    std::vector<MutableBytes> input_views_, output_views_;
};

/// The model up to the operator, whose outputs are the graph's: what comes after it need not have a
/// kernel.
[[nodiscard]] model::Model up_to(const model::Model& model, const CompiledOperator& op);

/// Runs what comes before the operator, state as at the start: on the CPU, and compiled operators
/// on a simulated chip. `inputs`: one of each graph input, as long as its tensor.
/// Errors: those of LayerBinding::of(); those of graph::Executor, and of the simulated chip, for
/// the operators before.
[[nodiscard]] Result<OperatorTensors> tensors_of_operator(
    const model::Model& model, const CompiledOperator& op,
    const std::vector<std::vector<std::byte>>& inputs);

}  // namespace reef::edgetpu
