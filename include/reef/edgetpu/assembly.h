// Edge TPU programs as text, and text as programs. The way there and back gives the same bytes, for
// programs and for arbitrary data.
//
// One instruction to a line, or one directive; ";" begins a comment:
//
//     0x0003: mac tiles=0xffff seq=2 loop.limit0=63 scale=0.0125 raw[1860+4]=0x1
//
// The address in front is ignored when assembling. Fields that are not named are zero. Numbers are
// decimal, or hexadecimal after 0x; float fields take a decimal number, inf, or their bits after
// 0x. A "?" after a name marks a field whose meaning is a guess.
//
// The symbolic form writes groups of fields and values by name; both forms assemble, and mix:
//
//     in=0x100[4x64][256x7]          loop nest: base, then stride x count of each dimension,
//     strides
//                                    relative to the start of the dimension's pass
//     loop=64x7                      counts of loops
//     wait0=RING_READ_A@2>=1+1       before pass i of level 2: counter >= 1 + 1 * i; ",destination"
//                                    follows when the wait is on the destination nest
//     signal.ring_read=@1            counts passes of the dimensions below level 1
//     alu=addi(s4,s10,0x40)          a bundle's slot: operation and operands in the fields' order
//     tiles=t0-t3+t8, tiles=all      tile sets
//     reset.counters=AVDATA+PARAMETERS, engines=all, engines=all-OP
//
// Directives: ".stream NAME" begins another stream, ".word 0x..." is a word that is no instruction
// (128 bits as one number), ".bytes HEX" fewer than 16 bytes at the end of a stream.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reef/edgetpu/isa.h"
#include "reef/hw/assembly.h"

namespace reef::edgetpu {

struct TextOptions {
    bool symbolic = false;  ///< groups and values by name, comments
    bool addresses = true;  ///< word address in front of each line
};

/// Appends one line without its line end and without comments.
void append_text(const Instruction& instruction, const TextOptions& options, std::string& out);

/// The value of one field as the text form writes it.
[[nodiscard]] std::string field_text(const Instruction& instruction, const FieldInfo& field,
                                     const TextOptions& options);

using hw::AssembledStream;

/// Streams in the order of the text. Errors name line and token: unknown mnemonics and fields,
/// values that do not fit, fields given twice.
[[nodiscard]] Result<std::vector<AssembledStream>> assemble_streams(std::string_view text);

/// The bytes of a text with at most one stream.
[[nodiscard]] Result<std::vector<std::byte>> assemble(std::string_view text);

}  // namespace reef::edgetpu
