// The DPU's stages BS, BN and EW on data between CORE and the output converter.
#pragma once

#include "rk3588/sim/dpu_rdma.h"
#include "rk3588/sim/dpu_tables.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// int8 data are int32 between the stages, each of which saturates; products are shifted to the
/// nearest, ties to even. fp16 data are binary32. Channels beyond the model's stay as they are.
[[nodiscard]] Status run_stages(WatchedRegisters& registers, const DpuShape& shape,
                                const Operands& operands, const FunctionTables& tables,
                                const Switches& switches, Sums& data);

}  // namespace reef::rk3588::sim
