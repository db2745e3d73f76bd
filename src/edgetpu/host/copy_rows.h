// The vector loops of the re-layout.
#pragma once

#include <cstdint>
#include <span>

#include "reef/edgetpu/layer_tensor.h"

namespace reef::edgetpu::host {

/// Copies every row and XORs `flip` into each 8 bytes from its start on. The rows are in the order
/// of `tensor` and leave no gaps: a row may first be written beyond its end.
void copy_rows(std::span<const OutputUnpacker::Rows> rows, Bytes wire, MutableBytes tensor,
               std::uint64_t flip);

}  // namespace reef::edgetpu::host
