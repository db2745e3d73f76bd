// Which of a compiled operator's tensors each layer of its program is: the one place that knows.
#pragma once

#include <span>
#include <vector>

#include "reef/edgetpu/package.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

class LayerBinding {
  public:
    /// Errors: bad_input for a layer that has the name of none of the operator's tensors, or
    /// another size, type, scale or zero point, and for an output that is not one layer's.
    [[nodiscard]] static Result<LayerBinding> of(const std::vector<Layer>& inputs,
                                                 const std::vector<Layer>& outputs,
                                                 const model::Subgraph& graph,
                                                 const model::Operator& op);

    /// Tensors in the operator's order; then inputs() and outputs() are the same in the layers'.
    void bind(std::span<const MutableBytes> inputs, std::span<const MutableBytes> outputs);
    [[nodiscard]] std::span<const Bytes> inputs() const { return inputs_; }
    [[nodiscard]] std::span<const MutableBytes> outputs() const { return outputs_; }

    /// Where a layer's tensor is among the operator's.
    struct Place {
        bool input = false;     ///< among the inputs, as state is, which the program writes back
        std::size_t index = 0;  ///< in Operator::inputs or Operator::outputs
    };
    [[nodiscard]] std::span<const Place> input_places() const { return input_places_; }

  private:
    std::vector<Place> input_places_;   ///< by layer
    std::vector<Place> output_places_;  ///< by layer; an input's for state
    std::vector<Bytes> inputs_;
    std::vector<MutableBytes> outputs_;
};

}  // namespace reef::edgetpu
