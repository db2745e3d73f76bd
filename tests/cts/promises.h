// What the runtime promises of every device.
#pragma once

#include <span>
#include <string_view>

#include "cts/subject.h"

namespace reef::cts {

struct Promise {
    std::string_view name;      ///< as in lists of what is not supported
    std::string_view sentence;  ///< what a session may rely on
    /// Whether the subject keeps it; the error says how not.
    Status (*check)(const Subject& subject);
};

[[nodiscard]] std::span<const Promise> promises();

}  // namespace reef::cts
