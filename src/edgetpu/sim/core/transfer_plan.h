// The transfers of an executable as its program asks for them.
#pragma once

#include "reef/base/result.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::sim {

/// As plan_transfers(), also for executables with scratch memory on the host: their transfers come
/// from the descriptors that the program fires, because hints merge transfers that touch in
/// scratch memory even when their directions differ. Bytes that the chip has put there are all
/// there before they are sent back: a fence stands between.
/// Errors: those of plan_transfers() and of dma_sequence().
[[nodiscard]] Result<TransferPlan> transfer_plan(const Executable& executable);

}  // namespace reef::edgetpu::sim
