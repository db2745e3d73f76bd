// The DPU's output converter and its way to memory.
#pragma once

#include "rk3588/sim/dpu_rdma.h"
#include "rk3588/sim/memory.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// The results have their place in memory. Errors: as write_results().
[[nodiscard]] Status check_results_place(WatchedRegisters& registers, const DpuShape& shape,
                                         const Switches& switches, const Memory& memory);

/// Converts to int8, int32, fp16 or fp32 and writes surfaces of whole atoms, the lanes beyond the
/// last channel with OFFSET_PEND. Errors, by register: conversions and orders that are not
/// modelled, a SURFACE_ADD that does not fit SIZE_E, writes outside of memory.
[[nodiscard]] Status write_results(WatchedRegisters& registers, const DpuShape& shape,
                                   const Sums& data, const Switches& switches, Memory& memory,
                                   Traffic& traffic);

}  // namespace reef::rk3588::sim
