// Another form for the same work: of two instructions that compute the same, the one that a
// program of the vendor has.
#pragma once

#include "edgetpu/program/instruction.h"

namespace reef::edgetpu::lowering {

/// Gives the instruction a known form (edgetpu/isa/form.h) in which it reads, computes and writes
/// the same in the same order, and counts the same events. What may differ:
/// - dimensions of one pass stand among those that move, as the vendor's programs have them;
/// - there are more waits, for a count of 0: met while counters have fewer than 2^15 events since
///   they began anew;
/// - a tensor instruction without a bias, scales or zero points by lane, which nothing but such
///   ones and halos wait for, counts its results at another level or not at all;
/// - one whose parameters lie still counts that they were read;
/// - an output group ends elsewhere, where groups share all they use.
/// So whoever emits must take counts from the emitted code, and stop where counters must begin
/// anew. False, and the instruction as it was, where no known form does it.
bool conform(program::Operation& operation);

}  // namespace reef::edgetpu::lowering
