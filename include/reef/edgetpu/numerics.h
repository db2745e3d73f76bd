// The Edge TPU's arithmetic for the CPU's kernels.
#pragma once

#include "reef/cpu/placer.h"

namespace reef::edgetpu {

/// Operators that the vendor's compiler would place on the chip are computed as it does, with one
/// float32 multiplication per sum and ties to even; the others stay TFLite's. Source: compiled
/// models next to their plain sources. It shares no code with the simulator, so that each can be
/// checked against the other.
[[nodiscard]] const cpu::Arithmetic& arithmetic();

}  // namespace reef::edgetpu
