// Rules that a final.mlir must keep for its code generator and the runtime.
#pragma once

#include "reef/chip/checker.h"
#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

[[nodiscard]] chip::CheckReport check_program(const FinalProgram& program);

/// The rules on a function's groups alone: results and Stores, flow, what neighbours run of each
/// other, and that all they give is read.
[[nodiscard]] std::vector<chip::Finding> check_groups(const FinalProgram& program,
                                                      const Function& function);

}  // namespace reef::sophgo
