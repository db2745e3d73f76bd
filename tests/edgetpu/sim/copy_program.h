// A small program in the assembler's text: 64 bytes of input reach the output through every kind of
// engine of a tile.
#pragma once

#include <string>
#include <string_view>

#include "reef/edgetpu/package.h"

namespace reef::edgetpu::sim {

inline constexpr int copied_bytes = 64;

/// Tile 0 receives the identity as a parameter row and the input as a row, lays the input into
/// narrow memory, multiplies it word by word, and sends the result to the host. A copy also goes to
/// tile 1 over the mesh.
[[nodiscard]] std::string copy_program();

/// The same with interrupt 0 behind its output, as a host that drives it expects.
[[nodiscard]] std::string interrupting_copy_program();

/// The program's text with one piece replaced. Throws when the piece is not there just once.
[[nodiscard]] std::string with(std::string text, std::string_view piece, std::string_view other);

/// A stand-alone executable around it: parameters, one input, one output. Throws when the text does
/// not assemble.
[[nodiscard]] Package copy_package(std::string_view text, int narrow_bound = 256);
/// The same with DMA hints, for a driver: instructions, parameters, input, output, interrupt 0.
[[nodiscard]] Package hinted_copy_package(std::string_view text);

}  // namespace reef::edgetpu::sim
