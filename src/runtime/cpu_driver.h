// The CPU among the drivers. It is where operators stay that no device takes, so that nothing is
// compiled for it and a session never opens it.
#pragma once

#include <memory>

#include "reef/runtime/driver.h"

namespace reef::runtime {

inline constexpr std::string_view cpu_family = "cpu";

[[nodiscard]] std::unique_ptr<Driver> cpu_driver();

}  // namespace reef::runtime
