// Pass "embed": programs into a package.
#pragma once

#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {

[[nodiscard]] Package package_of(const Plan& plan, Programs programs);

}  // namespace reef::edgetpu::lowering
