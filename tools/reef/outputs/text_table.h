// Columns of text, as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outputs/console.h"
#include "reef/base/text.h"

namespace reef::tool {

enum class Align : std::uint8_t { left, right };

struct Column {
    std::string title;
    Align align = Align::left;
    /// Not 0: left out where the terminal is too narrow, the greatest first.
    int spare = 0;
};

/// Cells pass through printable(); they may be of any length. The last column is never padded.
class TextTable {
  public:
    explicit TextTable(std::vector<Column> columns);

    /// Precondition: as many cells as columns.
    void add(std::vector<std::string> cells);
    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Titles, then the rows, each indented by two spaces. On a terminal that is narrower, spare
    /// columns are left out, and the widest columns of text are broken into lines.
    void print(Console& console) const;

  private:
    /// The columns that a terminal (0: no terminal) has room for; text can be made narrower.
    [[nodiscard]] std::vector<std::size_t> shown(const std::vector<std::size_t>& widths,
                                                 std::size_t terminal) const;
    /// Takes what is too much for a terminal from the widest of the columns.
    void fit(std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns,
             std::size_t terminal) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Columns that a terminal needs for the text, counting each character as one column.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace reef::tool
