// PPU and PPU_RDMA: pooling of cubes from memory.
#pragma once

#include "rk3588/sim/memory.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// int8 and fp16: greatest, least, average. No results of a real chip are known for int8. Errors,
/// by register: what is not modelled, sizes that contradict each other, windows that leave the
/// padded input (a real chip hangs), accesses outside of memory.
[[nodiscard]] Status run_ppu(WatchedRegisters& registers, const Switches& switches, Memory& memory,
                             Traffic& traffic);

}  // namespace reef::rk3588::sim
