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

enum class ScaleChange {
    copied,     ///< one tensor gets another one's
    exchanged,  ///< of two tensors
    halved,     ///< one tensor's
};

/// `plain` with other scales of one tensor or two that operators read or give, drawn among those
/// that have one scale: whatever the operators make of it. Biases stay in steps of their products.
[[nodiscard]] model::Model with_other_scales(const model::Model& plain, unsigned seed,
                                             ScaleChange change);

}  // namespace reef::test
