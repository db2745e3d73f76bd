// How far apart the two cores are that run a program's threads.
#pragma once

#include <optional>

namespace reef::peers {

/// Least nanoseconds that a word takes to another core of this process and back: about 50 where
/// both share a cache, some hundreds where they do not. A virtual machine's cores may be near at
/// one time and far at another. Nothing where the process has one core. Takes some milliseconds.
[[nodiscard]] std::optional<double> core_distance_ns();

}  // namespace reef::peers
