// A small network of the tests' own; without GoogleTest, for the fuzzers' seeds.
#pragma once

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::test {

/// A convolution and a depthwise one behind it, uint8.
[[nodiscard]] Result<model::Model> two_convolutions(std::int32_t times = 1);

}  // namespace reef::test
