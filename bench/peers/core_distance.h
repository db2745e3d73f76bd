// How far apart two cores are.
#pragma once

#include <optional>

namespace reef::peers {

/// Least nanoseconds that a word takes from the first core that this process may use to the second
/// and back: about 100 where both share a cache, some hundreds where they do not. A virtual
/// machine's cores may be near at one time and far at another. Where there are more cores, the
/// threads of a program may be on others. Nothing where the process has one core, or may not choose
/// it. Takes some milliseconds.
[[nodiscard]] std::optional<double> core_distance_ns();

}  // namespace reef::peers
