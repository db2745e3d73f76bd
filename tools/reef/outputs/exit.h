// Exit codes of the command.
#pragma once

#include <utility>

#include "reef/base/result.h"

namespace reef::tool {

enum class Exit : int {
    ok = 0,
    failed = 1,  ///< a file is missing or holds what the verb cannot use; a difference was found
    usage = 2,   ///< wrong whatever the files hold, or it names what they do not have
    device = 3,  ///< the device is missing or denied
};

/// The exit code that reports an error of this cause.
[[nodiscard]] Exit exit_for(Cause cause);

/// To the library what a file holds may be a wrong request; to the command it is no usage error.
[[nodiscard]] Error of_file(Error error);

template <typename T>
[[nodiscard]] Result<T> of_file(Result<T> result) {
    if (!result) result.error() = of_file(std::move(result.error()));
    return result;
}

}  // namespace reef::tool
