// Another form for the same work: of two instructions that compute the same, the one that a
// program of the vendor has.
#pragma once

#include "edgetpu/program/instruction.h"

namespace reef::edgetpu::lowering {

/// Gives the instruction a known form (edgetpu/isa/form.h) in which it reads, computes and writes
/// the same in the same order, and counts the same events. What may differ: dimensions of one pass
/// among those that move, as the vendor's programs have them; waits for events that have happened
/// before the program began; how often a tensor instruction tells that results are there, where
/// nothing but halos asks, or that parameters were read, where they lie still; and where an output
/// group ends, where groups share all they use. False, and the instruction as it was, where no
/// known form does it.
bool conform(program::Operation& operation);

}  // namespace reef::edgetpu::lowering
