// DPU_RDMA: the DPU's operands from memory.
#pragma once

#include <optional>
#include <vector>

#include "rk3588/sim/memory.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// Operands of one stage in memory, by channel; empty: the stage's register holds the operand.
struct StageOperands {
    std::vector<std::int32_t> alu;
    std::vector<std::int32_t> mul;
};

/// What DPU_RDMA read for one task.
struct Operands {
    std::optional<Sums> main;  ///< of a task whose DPU does not take CORE's sums
    StageOperands bs;
    StageOperands bn;
    std::optional<Sums> element_wise;
};

/// What the DPU says of the data: the size of the cube, and how it takes its operands.
struct DpuShape {
    unsigned width = 0;
    unsigned height = 0;
    unsigned channels = 0;       ///< that the model has
    unsigned made_channels = 0;  ///< that the arrays make
    Elements elements = Elements::int8;
    bool depthwise = false;
    bool flying = false;
    bool element_wise = false;  ///< EW takes an operand from memory
};

/// Errors, by register or by what is read: forms that are not modelled, sizes that contradict the
/// DPU's, a main operand that nobody takes (a real chip hangs), reads outside of memory.
[[nodiscard]] Result<Operands> read_operands(WatchedRegisters& registers, const DpuShape& shape,
                                             const Memory& memory, const Switches& switches,
                                             Traffic& traffic);

}  // namespace reef::rk3588::sim
