// Rules that every known Edge TPU program keeps, checked without running it.
#pragma once

#include <optional>
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
    bool unmodelled = false;  ///< no broken rule: what the simulator does not model
};

/// Checks the instruction streams of one executable, which run one after the other:
/// - all words are instructions;
/// - each stream begins with start, whose length is the stream's less 256 bits, and ends with halt,
///   four empty bundles and end; it has at most 2^14 words besides start and end, and one of that
///   length leaves out the bundles for which there is no room;
/// - tile instructions are numbered from 0 on (modulo 2^15) over all streams;
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
/// has to be where check_program() finds nothing, has that as its only fault; it is marked
/// `unmodelled` where the reason is an operation of the scalar core that is not modelled.
[[nodiscard]] std::vector<ProgramFault> check_synchronisation(std::span<const Bytes> chunks);

/// The first instruction at which the order of issue cannot be followed to the end, as in a program
/// that runs in circles; nothing when the program halts.
[[nodiscard]] std::optional<ProgramFault> check_halts(std::span<const Bytes> chunks);

/// The instructions that the simulated chip refuses before it runs a program: bits of unknown
/// purpose, and values and combinations of fields that no known program has. What only a run comes
/// upon is not among them. All are marked `unmodelled`. The words must be instructions.
[[nodiscard]] std::vector<ProgramFault> unmodelled_instructions(std::span<const Bytes> chunks);

}  // namespace reef::edgetpu
