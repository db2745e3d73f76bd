// Operators one by one: the vectorised kernel, the plain one and a memcpy of as many bytes as the
// operator reads and writes, and a peer where there is one; one thread, all in turn in one process,
// medians of the rounds.
//
// --json, schema_version 1:
//   target, rounds       the vectors; rounds of each operator
//   operators[]  operator, kernel       what it is, and which kernel of Reef's runs it
//                fast_us, plain_us, copy_us, ratio_to_plain, ratio_to_copy
//                peer_us, ratio_to_peer  null where the peer has no such operator
#pragma once

#include <functional>
#include <vector>

#include "operators/case.h"

namespace reef::cpu {

/// Microseconds of a run of the peer, measured for about a millisecond.
using Turn = std::function<Result<double>()>;
/// Error: why the peer is left out for this operator.
using PeerOf = std::function<Result<Turn>(const model::Model&)>;

struct Peer {
    const char* name = "";
    PeerOf of{};  ///< empty: there is no peer
};

/// What `main` of a benchmark returns. Its options: parts of names, --rounds, --json, --smoke.
[[nodiscard]] int measure(int argc, char** argv, const char* description,
                          const std::vector<Case>& cases, const Peer& peer);

}  // namespace reef::cpu
