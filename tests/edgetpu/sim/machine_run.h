// A package's programs on a machine, with access to what the public interface hides.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "edgetpu/sim/machine/machine.h"
#include "edgetpu/sim/machine/prepared_executable.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::sim {

/// The programs of a compiled model's package, in the order in which they run.
struct PackagePrograms {
    std::optional<PreparedExecutable> caching;
    PreparedExecutable computing;

    static Result<PackagePrograms> load(const Package& package);
    /// Of the first compiled operator in the file.
    static Result<PackagePrograms> load(const std::filesystem::path& model);

    /// Raw bytes of every input, from a seed.
    void set_inputs(unsigned seed);
    /// Both programs on a new machine's memories, then what was left unread, if it is strict.
    Status run(Machine& machine);
    /// Raw bytes of every output, in order.
    [[nodiscard]] std::vector<std::byte> outputs() const;
};

}  // namespace reef::edgetpu::sim
