// The check of the programs that a compiled model holds, or of a raw stream, and its report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "outputs/console.h"
#include "outputs/exit.h"
#include "reef/runtime/program_streams.h"

namespace reef::tool {

/// Exit::failed when a rule is broken. `verb` is the JSON document's.
[[nodiscard]] Exit check_programs(Console& console, std::string_view verb,
                                  const std::vector<runtime::ProgramStreams>& programs,
                                  const std::string& file, bool json);

}  // namespace reef::tool
