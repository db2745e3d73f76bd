// Columns of text, as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outputs/console.h"

namespace reef::tool {

enum class Align : std::uint8_t { left, right };

struct Column {
    std::string title;
    Align align = Align::left;
};

/// Cells pass through printable(); they may be of any length. The last column is never padded.
class TextTable {
  public:
    explicit TextTable(std::vector<Column> columns);

    /// Precondition: as many cells as columns.
    void add(std::vector<std::string> cells);
    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Titles, then the rows, each indented by two spaces.
    void print(Console& console) const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Columns that a terminal needs for the text, counting each character as one column.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// "1.39 MB", "925 B": powers of 1000, three digits.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
/// "13.6 M", "950", "1.2 G".
[[nodiscard]] std::string count_text(std::int64_t count);
/// "1.42 ms", "310 us", "2.00 s".
[[nodiscard]] std::string duration_text(double seconds);
/// "1 operator", "3 operators".
[[nodiscard]] std::string plural(std::size_t count, std::string_view singular);

}  // namespace reef::tool
