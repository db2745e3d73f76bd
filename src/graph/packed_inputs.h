// Kernels that keep constants in a form of their own, or compute an input from another one.
#pragma once

#include <cstddef>

namespace reef::graph {

/// What a Kernel is besides when its runs do not read all inputs: not those that it packs, nor what
/// follows from another input.
class PacksInputs {
  public:
    virtual ~PacksInputs() = default;
    /// Whether run() reads input i from its Frame. Other constants may lie there at any address.
    [[nodiscard]] virtual bool reads_input(std::size_t i) const = 0;
};

}  // namespace reef::graph
