// What the machine can do at most, measured in the run that is compared with it.
#pragma once

#include <cstdint>
#include <limits>
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

/// How many times as fast two threads multiply, without memory, as one: less than 2 where the clock
/// falls, others use the cores, or two are halves of one. Measured in turn with what it is compared
/// with, for a virtual machine's cores change.
class GainOfTwoThreads {
  public:
    /// Of this time's medians; nothing without AVX2. Takes some tens of milliseconds.
    std::optional<double> measure();
    /// Of the least times; nothing without AVX2, or when nothing was measured.
    [[nodiscard]] std::optional<double> times() const;

  private:
    static constexpr double never = std::numeric_limits<double>::max();
    double least_one_ns_ = never, least_two_ns_ = never;
};

/// Products that the network's convolutions and matrix products need, padding included.
[[nodiscard]] std::uint64_t products_of(const model::Subgraph& graph);

}  // namespace reef::peers
