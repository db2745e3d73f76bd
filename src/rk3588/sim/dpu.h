// DPU: correction and bias, scales, element-wise operators, conversion, write-back.
#pragma once

#include "rk3588/sim/dpu_rdma.h"
#include "rk3588/sim/dpu_tables.h"
#include "rk3588/sim/memory.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// What the DPU takes and how, for its reader. Errors: precisions and modes that are not modelled.
[[nodiscard]] Result<DpuShape> read_dpu_shape(WatchedRegisters& registers);

/// The stages in their order on `sums` (CORE's, or the main operand), and the results into memory.
/// `core` says whether CORE has its registers, for CLIP_TRUNCATE. Errors, by register: what is not
/// modelled, sizes that contradict each other, operands that are expected and were not read.
[[nodiscard]] Status run_dpu(WatchedRegisters& registers, const DpuShape& shape, Sums sums,
                             const Operands& operands, bool core, const FunctionTables& tables,
                             const Switches& switches, Memory& memory, Traffic& traffic);

}  // namespace reef::rk3588::sim
