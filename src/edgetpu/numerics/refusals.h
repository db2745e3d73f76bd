// What the numerics say of operators that no compiled model shows.
#pragma once

#include <string_view>

#include "reef/base/result.h"

namespace reef::edgetpu::numerics {

/// The refusal of what no compiled model that was looked at contains.
[[nodiscard]] std::unexpected<Error> unknown_on_edgetpu(std::string_view what);

}  // namespace reef::edgetpu::numerics
