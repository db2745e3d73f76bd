// Rules that every known Edge TPU program keeps, checked without running it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// A rule that a program breaks, and where.
struct ProgramFault {
    std::size_t chunk = 0;
    std::size_t word = 0;  ///< in that chunk
    std::string what;
};

/// Checks the instruction streams of one executable, which run one after the other:
/// - all words are instructions;
/// - each stream begins with start, whose length is the stream's less 256 bits, and ends with halt,
///   four empty bundles and end;
/// - tile instructions are numbered from 0 on (modulo 2^13) over all streams;
/// - branch targets are instructions of the stream, and the bundles that a loop repeats exist.
[[nodiscard]] std::vector<ProgramFault> check_program(std::span<const Bytes> chunks);

}  // namespace reef::edgetpu
