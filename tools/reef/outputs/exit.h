// Exit codes of the command.
#pragma once

#include "reef/base/result.h"

namespace reef::tool {

enum class Exit : int {
    ok = 0,
    failed = 1,  ///< the input is bad, or a comparison found a difference
    usage = 2,   ///< the command line is wrong
    device = 3,  ///< the device is missing or denied
};

/// The exit code that reports an error of this cause.
[[nodiscard]] Exit exit_for(Cause cause);

}  // namespace reef::tool
