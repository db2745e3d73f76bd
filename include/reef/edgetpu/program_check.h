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

/// Whether what the program's engines wait for can come, and what they send is received. The
/// instructions are taken in the order in which the scalar core issues them, branches included:
/// - whatever an instruction waits for on a tile is counted by instructions issued before the next
///   fence that waits for its engine; all of it before the end. The same for the scalar core's
///   counters, which are named after the engines that wait for them;
/// - no instructions of a tile wait for each other before any of them can begin;
/// - counters are set when no engine counts them; an engine that waits for one has not begun and
///   the counter keeps its value;
/// - senders on a ring take turns without a gap, and sync expects as many messages as are sent;
/// - each notification of a tile is awaited by one sync, which comes behind it;
/// - rows sent to a tile on a ring are as many as it receives, head rows included, whenever the
///   count of messages begins anew; words sent to a neighbour are as many as it receives;
/// - rows sent to the scalar core hold what ring_pop takes; FIFO units taken in are sent on; both
///   are the bytes of the DMA descriptors.
/// All known programs keep these rules. A program whose order of issue cannot be followed, as it
/// has to be where check_program() finds nothing, has that as its only fault.
[[nodiscard]] std::vector<ProgramFault> check_synchronisation(std::span<const Bytes> chunks);

}  // namespace reef::edgetpu
