// The rules of Google's driver for a program's transfers, at whatever addresses the host's memory
// has.
#pragma once

#include <cstddef>

#include "reef/model/graph.h"

namespace reef::test {

/// For each executable, `rounds` times: field offsets are given random addresses, and the scalar
/// core fires the descriptors that the DMA hints name, in their order. Returns how many fired.
std::size_t expect_hints_hold_anywhere(const model::Model& compiled, int rounds);

}  // namespace reef::test
