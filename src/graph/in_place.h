// Kernels whose output may lie where an input does.
#pragma once

#include <cstddef>

namespace reef::graph {

/// What a Kernel is besides when each byte of its only output follows from the same byte of one
/// input, and its runs allow both at one address.
class WorksInPlace {
  public:
    virtual ~WorksInPlace() = default;
    [[nodiscard]] virtual std::size_t replaced_input() const = 0;
};

}  // namespace reef::graph
