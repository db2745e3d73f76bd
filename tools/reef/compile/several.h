// Models that are compiled together into a folder: those that take turns on one chip, and the
// segments of one.
#pragma once

#include "compile/compilation.h"
#include "outputs/console.h"
#include "outputs/exit.h"
#include "reef/base/result.h"
#include "reef/chip/compiler.h"

namespace reef::tool {

/// Several models, or one in segments.
[[nodiscard]] Result<Exit> compile_several(const CompileVerbOptions& options,
                                           const chip::Compiler& compiler, Console& console);

}  // namespace reef::tool
