// Two tiles side by side.
#pragma once

#include <gtest/gtest.h>

#include "edgetpu/sim/tile/tile.h"

namespace reef::edgetpu::sim {

/// Equal memories, row lengths, full marks and counters; says where the first difference is.
[[nodiscard]] ::testing::AssertionResult same_memory(const Tile& a, const Tile& b);

}  // namespace reef::edgetpu::sim
