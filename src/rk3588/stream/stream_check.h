// Rules of streams that show without running them.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"

namespace reef::rk3588 {

struct StreamFault {
    std::size_t word = 0;
    std::string what;
    bool unmodelled = false;  ///< no broken rule: the simulated chip refuses it
};

/// A stream may hold several tasks and, between them, words without effect.
[[nodiscard]] std::vector<StreamFault> check_stream(Bytes stream);

}  // namespace reef::rk3588
