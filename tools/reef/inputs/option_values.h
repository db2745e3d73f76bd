// What options take: numbers of a range, and names that are not empty.
#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Validator;
}

namespace reef::tool {

/// Whole numbers from `least` to `most`, decimal or 0x...: CLI11 alone wraps what is negative or
/// too great, and takes an empty text for 0.
[[nodiscard]] CLI::Validator whole_number(
    std::uint64_t least = 0, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// Finite numbers from `least` to `most`: CLI::Range lets NaN pass.
[[nodiscard]] CLI::Validator real_number(double least,
                                         double most = std::numeric_limits<double>::max());

/// The number or the type of an executable.
[[nodiscard]] CLI::Validator executable_name();

}  // namespace reef::tool
