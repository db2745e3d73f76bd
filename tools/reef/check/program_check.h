// The check of the programs that a compiled model holds, or of a raw stream, and its report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "outputs/console.h"
#include "outputs/exit.h"
#include "reef/base/result.h"
#include "reef/runtime/program_streams.h"

namespace reef::tool {

/// Exit::failed when a rule is broken. `verb` is the JSON document's.
[[nodiscard]] Exit check_programs(Console& console, std::string_view verb,
                                  const std::vector<runtime::ProgramStreams>& programs,
                                  const std::string& file, bool json);

/// Of programs that were rewritten, one by one: whether the check finds what it did not find before
/// in the same word. Programs whose streams stayed as they were are not checked. Errors:
/// unsupported, with the program and the word as their place.
[[nodiscard]] Status check_rewritten(const std::vector<runtime::ProgramStreams>& before,
                                     const std::vector<runtime::ProgramStreams>& after);

}  // namespace reef::tool
