// The DPU's two function tables, and EW's way through them.
#pragma once

#include <array>
#include <bitset>
#include <span>

#include "rk3588/sim/dpu_rdma.h"
#include "rk3588/sim/switches.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588::sim {

/// LE and LO, as the words of tasks load them. They stay until other words come.
class FunctionTables {
  public:
    void reset() { *this = {}; }

    /// Errors: an entry behind the tables' last ones.
    [[nodiscard]] Status load(std::span<const TableWrite> writes);

    /// Errors: an entry that nobody has loaded.
    [[nodiscard]] Result<std::int32_t> at(unsigned table, std::uint64_t entry) const;

  private:
    struct Table {
        std::array<std::int16_t, spec::lut_entries> entries{};
        std::bitset<spec::lut_entries> loaded;
    };
    std::array<Table, 2> tables_;
};

/// Each value becomes the function's. Within a table's range its index is what LUT_INFO leaves of
/// the distance from the range's start, and the rest goes from one entry to the next; outside it
/// goes on from the last entry by a slope. Where both tables or neither have the value, LUT_CFG
/// says which one answers. Channels beyond the model's stay as they are. Errors, by register: forms
/// that are not modelled; what FunctionTables says.
[[nodiscard]] Status run_function(WatchedRegisters& registers, const DpuShape& shape,
                                  const FunctionTables& tables, const Switches& switches,
                                  Sums& data);

}  // namespace reef::rk3588::sim
