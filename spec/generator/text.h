// Pieces of text that several products share.
#pragma once

#include <string>
#include <string_view>

namespace reef::specgen {

/// As a C++ string literal.
[[nodiscard]] std::string quoted(const std::string& text);
/// As the cell of a Markdown table, which "|" would end.
[[nodiscard]] std::string cell(const std::string& text);
/// What the grades mean, as a paragraph.
[[nodiscard]] std::string_view grades_text();

}  // namespace reef::specgen
