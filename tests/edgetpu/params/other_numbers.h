// A plain model with the architecture of another and numbers of its own.
#pragma once

#include "reef/model/graph.h"

namespace reef::test {

/// Weights, biases that are not zero, scales and zero points drawn at random. What an operator
/// fixes stays: the scale of SOFTMAX's output, equal scales of what only renames or moves, equal
/// scales of channels, symmetric weights. So do zero points of inputs with a padded border.
[[nodiscard]] model::Model with_other_numbers(const model::Model& plain, unsigned seed);

}  // namespace reef::test
