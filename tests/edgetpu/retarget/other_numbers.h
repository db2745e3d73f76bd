// A plain model with the architecture of another and numbers of its own.
#pragma once

#include "reef/model/graph.h"

namespace reef::test {

enum class Change {
    all,  ///< weights, biases that are not zero, scales and zero points, at random
    /// Weights and zero points by some steps, biases and scales by a tenth: a network with work to
    /// do keeps doing it, so that results stay varied.
    slight,
};

/// What an operator fixes stays: the scale of SOFTMAX's output, equal scales of what only renames
/// or moves, equal scales of channels, symmetric weights. So do operators whose quantisation
/// retargeting does not know: their inputs and outputs keep scales and zero points.
[[nodiscard]] model::Model with_other_numbers(const model::Model& plain, unsigned seed,
                                              Change change = Change::all);

}  // namespace reef::test
