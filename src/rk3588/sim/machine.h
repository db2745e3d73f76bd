// One core of the simulated chip: its program controller, and the engines that tasks start.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rk3588/sim/cna.h"
#include "rk3588/sim/dpu_tables.h"
#include "rk3588/sim/memory.h"
#include "rk3588/sim/switches.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588::sim {

/// What a task did.
struct TaskReport {
    std::uint32_t address = 0;
    std::uint32_t blocks = 0;    ///< that it started, as in Blocks
    std::uint64_t products = 0;  ///< of features and weights, lanes of padding included
    Traffic traffic;
};

struct RunReport {
    std::vector<TaskReport> tasks;
    std::uint32_t interrupts = 0;  ///< bits of INTERRUPT_RAW_STATUS
    [[nodiscard]] Traffic traffic() const;
};

/// Executes chains of tasks from registers and memory alone. A block has two groups of registers
/// that take turns from task to task, so that a short task keeps what the one before the last
/// wrote.
class Machine {
  public:
    /// `memory` must outlive the machine.
    explicit Machine(Memory& memory, const Switches& switches = {})
        : memory_(memory), switches_(switches), cna_(memory) {}
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    /// What a reset leaves: no registers, nothing in the CBUF and in the function tables.
    void reset();

    /// The chain whose first task has `words` words at `address`, until its end or until `tasks`
    /// tasks have run. Errors: those of read_task() and of the engines, with the number and the
    /// address of the task; what is set and not modelled, by register and field.
    [[nodiscard]] Result<RunReport> run(std::uint32_t address, std::size_t words,
                                        std::size_t tasks = spec::most_chained_tasks);

  private:
    static constexpr std::size_t block_count = 6;
    struct Groups {
        std::array<RegisterSet, 2> sets;
        unsigned pointer = 0;  ///< the group that is written
        bool take_turns = false;
    };

    [[nodiscard]] Status write_registers(const Task& task);
    [[nodiscard]] RegisterSet registers_of(std::uint32_t blocks) const;
    [[nodiscard]] Status execute(std::uint32_t blocks, TaskReport& report);
    [[nodiscard]] Status run_convolution(WatchedRegisters& registers, std::uint32_t blocks,
                                         TaskReport& report);
    [[nodiscard]] Status run_flying(WatchedRegisters& registers, TaskReport& report);
    [[nodiscard]] std::uint32_t take_turns(std::uint32_t blocks);

    Memory& memory_;
    Switches switches_;
    Cna cna_;
    FunctionTables tables_;
    std::array<Groups, block_count> groups_;
};

}  // namespace reef::rk3588::sim
