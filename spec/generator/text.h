// Pieces of text that several products share.
#pragma once

#include <string>
#include <string_view>

namespace reef::specgen {

/// As a C++ string literal.
[[nodiscard]] std::string quoted(const std::string& text);
/// As the cell of a Markdown table, which "|" would end.
[[nodiscard]] std::string cell(const std::string& text);
/// The first two lines of a page: what it is made from, and its title.
[[nodiscard]] std::string page_head(const std::string& chip, std::string_view source,
                                    const std::string& title);
/// The lines of a header up to the tables, whose names are in the chip's namespace `spec`.
[[nodiscard]] std::string header_head(const std::string& chip, std::string_view source,
                                      std::string_view includes);
[[nodiscard]] std::string header_end(const std::string& chip);
/// "scalar_core" -> "ScalarCore"
[[nodiscard]] std::string type_name_of(const std::string& name);
/// Lines of at most 100 characters.
[[nodiscard]] std::string wrapped(const std::string& text);
/// What the grades mean, as a paragraph.
[[nodiscard]] std::string_view grades_text();

}  // namespace reef::specgen
