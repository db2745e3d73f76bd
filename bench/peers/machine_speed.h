// What the machine can do at most, measured in the run that is compared with it.
#pragma once

#include <cstdint>
#include <optional>

#include "reef/model/graph.h"

namespace reef::peers {

struct MachineSpeed {
    double clock_ghz = 0;          ///< of one core that adds
    double byte_products_ns = 0;   ///< of one core in a nanosecond; 0 without AVX-512 VNNI
    double float_products_ns = 0;  ///< the same of float32; 0 without AVX-512
};
/// Takes some milliseconds.
[[nodiscard]] MachineSpeed measure_machine();

/// How many times as much two threads multiply, without memory, as one: less than 2 where the clock
/// falls, others use the cores, or two are halves of one. Neither waits for the other, so that it
/// is the sum of what both cores do, of which one may be slower. Over the time that a run of a
/// network takes; a virtual machine's cores change, so it is measured between what is compared with
/// it. Nothing without AVX2, where the process has one core and where the system gives the second
/// thread none. Takes a tenth of a second.
[[nodiscard]] std::optional<double> gain_of_two_threads();

/// Products that the network's convolutions and matrix products need, padding included.
[[nodiscard]] std::uint64_t products_of(const model::Subgraph& graph);

}  // namespace reef::peers
