// The toy chip's compiler, and its arithmetic on the CPU.
#pragma once

#include "reef/runtime/registry.h"

namespace reef::toy {

/// RESHAPE of bytes becomes a program that takes them and gives them back; the setting `wrong` adds
/// 1 on the way, as a compiler's own error would.
void add_compiler(runtime::Registry& registry);

}  // namespace reef::toy
