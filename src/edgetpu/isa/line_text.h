// One line of a listing, for who writes many.
#pragma once

#include "edgetpu/isa/text_writer.h"
#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu {

/// append_text() between begin_line() and end_line().
void put_line(TextWriter& out, const Instruction& instruction, const TextOptions& options);

}  // namespace reef::edgetpu
