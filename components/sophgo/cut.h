// A network truncated after named tensors.
#pragma once

#include "reef/sophgo/final_engine.h"

namespace reef::sophgo {

/// As FinalEngine::cut().
[[nodiscard]] Result<Cut> cut_at(std::string_view text, const CutRequest& request);

}  // namespace reef::sophgo
