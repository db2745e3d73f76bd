// What the system says of this process's threads (proc(5)).
#pragma once

#include <sys/types.h>

namespace reef::test {

/// Whether the system has put the thread to sleep within five seconds.
[[nodiscard]] bool falls_asleep(pid_t thread);

/// The same of all threads but the caller's: whether none goes on looking for work.
[[nodiscard]] bool others_fall_asleep();

}  // namespace reef::test
