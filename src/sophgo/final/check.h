// Rules that a final.mlir must keep for its code generator and the runtime.
#pragma once

#include "reef/chip/checker.h"
#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

[[nodiscard]] chip::CheckReport check_program(const FinalProgram& program);

}  // namespace reef::sophgo
