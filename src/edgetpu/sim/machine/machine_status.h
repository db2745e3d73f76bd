// What the parts of a machine are doing between two rounds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "edgetpu/sim/core/scalar_engines.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/tile/tile.h"

namespace reef::edgetpu::sim {

struct EngineStatus {
    struct Walk {
        std::string_view nest;
        NestCursor cursor;
    };
    const ProgramInstruction* current = nullptr;
    const ProgramInstruction* next = nullptr;  ///< that waits in the queue
    std::size_t queued = 0;
    Blocked blocked;  ///< in its last turn
    std::vector<Walk> walks;
};

/// What hands a tile's instructions to its engines.
struct DispatchStatus {
    const ProgramInstruction* next = nullptr;
    std::size_t queued = 0;
    std::string waits;  ///< for what the fence in front waits; empty: for nothing
    std::uint32_t notifications = 0;
};

struct CoreStatus {
    const ProgramInstruction* at = nullptr;  ///< null: halted, or at no instruction
    std::string waits;                       ///< for what a sync waits; empty: for nothing
};

/// "waits for RING_READ_A >= 3, which is 2"; empty when nothing blocks.
[[nodiscard]] std::string describe(const Blocked& blocked, const TileCounters& counters);
[[nodiscard]] std::string describe(const Blocked& blocked, const ScalarCounters& counters);

}  // namespace reef::edgetpu::sim
