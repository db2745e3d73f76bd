// What the CPU device runs, out of the table that the Executor itself uses.
#pragma once

#include <string>
#include <vector>

namespace reef::cpu {

struct SupportedOperator {
    std::string name;  ///< "CONV_2D", or a custom operator's name
    bool custom = false;
    std::string supports;  ///< one sentence: types and limits
    /// The same for Arithmetic::edgetpu; empty when the chip's way is not known.
    std::string edgetpu_arithmetic;
    friend bool operator==(const SupportedOperator&, const SupportedOperator&) = default;
};

/// Builtin operators in the order of their numbers, then custom ones.
[[nodiscard]] std::vector<SupportedOperator> supported_operators();

}  // namespace reef::cpu
