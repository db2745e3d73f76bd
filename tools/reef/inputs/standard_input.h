// Standard input as one of what a command reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"

namespace reef::tool {

/// "-", also as NAME=- and SHAPExTYPE=@-.
[[nodiscard]] bool is_standard_input(std::string_view text);

/// What one reads of standard input the next has not. Errors: bad_argument when several of the
/// texts are it.
[[nodiscard]] Status check_read_once(const std::vector<std::string>& texts);

}  // namespace reef::tool
