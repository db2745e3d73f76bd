// The simulated chip's cores on one memory, between two barriers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rk3588/sim/machine.h"

namespace reef::rk3588::sim {

/// A chain of tasks, as a kernel's driver starts it.
struct Start {
    std::uint32_t address = 0;
    std::size_t words = 0;  ///< of the first task
    std::size_t tasks = 0;
};

class Cores {
  public:
    /// `memory` must outlive the cores.
    explicit Cores(Memory& memory, const Switches& switches = {});

    /// What a reset leaves, on every core.
    void reset();

    /// Start n on core n, all at once; ends when all have ended. The cores compute one after the
    /// other: a byte that one writes and another reads or writes is an error, whatever their order
    /// on a chip. Errors: those of Machine::run(), with the core. Precondition: at most
    /// spec::core_count starts.
    [[nodiscard]] Result<std::vector<RunReport>> run(std::span<const Start> starts);

  private:
    Memory& memory_;
    std::vector<std::unique_ptr<Machine>> machines_;
};

}  // namespace reef::rk3588::sim
