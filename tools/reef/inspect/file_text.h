// Reports on files of a chip's own kinds, as text and as JSON.
#pragma once

#include <string>
#include <string_view>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/chip/file_kind.h"

namespace reef::tool {

void print_file_report(Console& console, const std::string& path, std::size_t bytes,
                       std::string_view kind, const chip::FileReport& report);
/// {"schema_version", "verb", "file", "bytes", "kind", ...the report's members}
[[nodiscard]] Json file_report_json(std::string_view verb, const std::string& path,
                                    std::size_t bytes, std::string_view kind,
                                    const chip::FileReport& report);

}  // namespace reef::tool
