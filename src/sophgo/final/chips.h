// What is known of the chips that final.mlir is made for.
#pragma once

#include <string_view>

#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

/// In the chip's shared memory (L2), which the host cannot read. False for chips whose place of it
/// is not known.
[[nodiscard]] bool in_local_memory(std::string_view chip, const Value& value);

}  // namespace reef::sophgo
