// An executable made ready to run on a simulated chip.
#pragma once

#include <optional>
#include <vector>

#include "edgetpu/sim/core/host_memory.h"
#include "machine.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::sim {

/// Its translated streams and the host memory that it works on. Moves keep all references.
struct PreparedExecutable {
    Executable executable;
    std::vector<std::vector<std::byte>> streams;
    Program program;
    std::optional<HostMemory> host;
};

/// Errors: unsupported ("not modelled"), bad_input; the place is the executable's type.
[[nodiscard]] Result<PreparedExecutable> prepare(const Executable& executable);

/// Errors: those of Machine::run().
[[nodiscard]] Status run(Machine& machine, PreparedExecutable& prepared);

/// Errors: unsupported for other chips than the Edge TPU and for several of them.
[[nodiscard]] Status check_chip(const Package& package);

}  // namespace reef::edgetpu::sim
