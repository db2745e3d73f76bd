// What a compilation gave, as a page or a table: made of the document that --json prints.
#pragma once

#include <string>

#include "outputs/json_output.h"
#include "reef/base/result.h"

namespace reef::tool {

/// By the end of the name: .html, .csv or .json. Errors: bad_argument for others.
[[nodiscard]] Result<std::string> compile_report(const Json& document, const std::string& path);

}  // namespace reef::tool
