// Which instruction an instruction is.
#pragma once

#include "reef/edgetpu/isa.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu {

/// `kind`: one of spec::op.
[[nodiscard]] inline bool is(const Instruction& instruction, unsigned kind) {
    return instruction.info == &spec::instructions[kind];
}

}  // namespace reef::edgetpu
