// Forms of instructions: what an instruction is without its numbers.
//
// Of two instructions of one form, the same parts of the hardware work in the same modes: which
// counters are counted and awaited at which level, which dimensions of a nest move, which are
// cropped or take turns, in which modes operands are read. Addresses, distances, counts, tiles,
// registers and constants are not part of it, nor whether a program caches parameters. A form that
// no known program has is where a chip could disagree with the simulator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// "ring_send src.mask=0x1 ring_write@1 producer@2 wait RING_PRODUCER_A@2 wait NARROW_TO_WIDE@1".
/// Precondition: an instruction, not data.
[[nodiscard]] std::string form_of(const Instruction& instruction);

/// The forms of the vendor's programs, ascending. Source: spec/edgetpu/forms.xml.
[[nodiscard]] std::span<const std::string_view> known_forms();
[[nodiscard]] bool is_known_form(std::string_view form);

/// How the least different known form of the same instruction differs: "without wait AVDATA@2, with
/// in.mask=0x7"; "no known program has the instruction" where that is so. Precondition: the form is
/// not known.
[[nodiscard]] std::string difference_to_known(std::string_view form);

}  // namespace reef::edgetpu
