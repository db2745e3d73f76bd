// Small models for the tests of the model floor.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/model/graph.h"

namespace reef::test {

/// Every feature that the Model holds, and none that makes sense to run: a per-channel convolution,
/// a variable, a custom operator, opaque options of both unions, sparsity, signatures, metadata.
[[nodiscard]] model::Model rich_model();

/// CONV_2D, RESHAPE, FULLY_CONNECTED, SOFTMAX on 1x4x4x2 int8.
[[nodiscard]] model::Model plain_model();

}  // namespace reef::test
