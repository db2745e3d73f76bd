// A small final.mlir with a planted fault, found and cut out.
#pragma once

#include <string>

#include "outputs/console.h"
#include "reef/base/result.h"

namespace reef::tool {

/// Writes the network, its tensors as they should be and as they are, and the cut into `folder`.
[[nodiscard]] Status run_final_demo(const std::string& folder, bool json, Console& console);

}  // namespace reef::tool
