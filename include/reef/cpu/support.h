// What the CPU device runs, out of the table that the Executor itself uses.
#pragma once

#include <string>
#include <vector>

namespace reef::cpu {

struct Arithmetic;  // placer.h

struct SupportedOperator {
    std::string name;  ///< "CONV_2D", or a custom operator's name
    bool custom = false;
    std::string supports;  ///< one sentence: types and limits
    /// The same for another arithmetic; empty when its machine's way is not known.
    std::string in_arithmetic;
    /// How far float32 results lie from the real ones at most; empty without a float32 form.
    std::string float_error;
    friend bool operator==(const SupportedOperator&, const SupportedOperator&) = default;
};

/// Builtin operators in the order of their numbers, then custom ones.
[[nodiscard]] std::vector<SupportedOperator> supported_operators(
    const Arithmetic* arithmetic = nullptr);

}  // namespace reef::cpu
