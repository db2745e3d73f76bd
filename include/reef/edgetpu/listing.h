// The text of whole Edge TPU programs; assembly.h says what it looks like.
#pragma once

#include <string>

#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu {

/// Of any bytes. The symbolic form has comments behind lines: where control goes, and what a fired
/// DMA descriptor says as far as it is known.
[[nodiscard]] std::string disassemble(Bytes stream, const TextOptions& options);

}  // namespace reef::edgetpu
