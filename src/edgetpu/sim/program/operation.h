// One instruction made ready, without the stream around it.
#pragma once

#include "edgetpu/sim/program/program.h"

namespace reef::edgetpu::sim {

/// Errors: as those of translate().
[[nodiscard]] Result<Operation> operation_of(const Instruction& source);

}  // namespace reef::edgetpu::sim
