// Comma-separated values, as spreadsheets read them (RFC 4180, lines end with \n).
#pragma once

#include <string>
#include <vector>

#include "outputs/console.h"

namespace reef::tool {

/// One line. Cells with commas, quotation marks or line breaks are quoted.
void print_csv(Console& console, const std::vector<std::string>& cells);

}  // namespace reef::tool
