// CORE: sums of products over windows.
#pragma once

#include "rk3588/sim/dpu_rdma.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// All windows of the convolution. int8: exact sums in 32 bits. fp16: products and sums in
/// binary32, in the order window row, window pixel, channel; the chip's order is not known. Errors,
/// by register: forms that are not modelled, sizes that contradict CNA's or the DPU's, sums that 32
/// bits might not hold.
[[nodiscard]] Result<Sums> accumulate(WatchedRegisters& registers, const Convolution& convolution,
                                      const DpuShape& dpu, const Switches& switches);

}  // namespace reef::rk3588::sim
