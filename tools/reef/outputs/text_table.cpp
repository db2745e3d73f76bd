#include "outputs/text_table.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace reef::tool {
namespace {

/// Columns of text are made no narrower.
constexpr std::size_t narrowest = 8;

std::string pad(const std::string& text, std::size_t width, Align align) {
    const std::string space(width - std::min(width, display_width(text)), ' ');
    return align == Align::left ? text + space : space + text;
}

/// Bytes of the first `width` columns of the text.
std::size_t bytes_of_columns(std::string_view text, std::size_t width) {
    std::size_t end = 0;
    for (std::size_t shown = 0; end < text.size(); ++end) {
        const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0u) != 0x80;
        if (begins && shown++ == width) break;
    }
    return end;
}

/// Lines of at most `width` columns, broken behind words where there are any; at least one.
std::vector<std::string> broken(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    while (display_width(text) > width) {
        std::size_t end = bytes_of_columns(text, width);
        if (const std::size_t space = text.rfind(' ', end);
            space != std::string_view::npos && space > 0)
            end = space;
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
        while (text.starts_with(' ')) text.remove_prefix(1);
    }
    lines.emplace_back(text);
    return lines;
}

}  // namespace

std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80; }));
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
    assert(cells.size() == columns_.size());
    for (std::string& cell : cells) cell = printable(cell);
    rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::shown(const std::vector<std::size_t>& widths,
                                          std::size_t terminal) const {
    std::vector<std::size_t> columns(widths.size());
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    const auto least_width = [&](std::size_t c) {
        return 2 + (columns_[c].align == Align::left ? std::min(widths[c], narrowest) : widths[c]);
    };
    const auto too_wide = [&] {
        std::size_t total = 0;
        for (const std::size_t c : columns) total += least_width(c);
        return terminal > 0 && total > terminal;
    };
    while (too_wide()) {
        const auto first =
            std::ranges::max_element(columns, {}, [&](std::size_t c) { return columns_[c].spare; });
        if (columns_[*first].spare == 0) break;
        columns.erase(first);
    }
    return columns;
}

void TextTable::fit(std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns,
                    std::size_t terminal) const {
    std::size_t total = 0;
    for (const std::size_t c : columns) total += widths[c] + 2;
    while (terminal > 0 && total > terminal) {
        std::size_t* widest = nullptr;
        for (const std::size_t c : columns)
            if (columns_[c].align == Align::left && (widest == nullptr || widths[c] > *widest))
                widest = &widths[c];
        if (widest == nullptr || *widest <= narrowest) return;
        *widest -= 1;
        total -= 1;
    }
}

void TextTable::print(Console& console) const {
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) widths.push_back(display_width(column.title));
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            widths[c] = std::max(widths[c], display_width(row[c]));
        }
    }
    const auto terminal = static_cast<std::size_t>(console.width());
    const std::vector<std::size_t> columns = shown(widths, terminal);
    fit(widths, columns, terminal);
    const auto text_of = [&](const auto& cell) {
        std::vector<std::vector<std::string>> cells;
        std::size_t height = 1;
        for (const std::size_t c : columns) {
            cells.push_back(broken(cell(c), widths[c]));
            height = std::max(height, cells.back().size());
        }
        std::string text;
        for (std::size_t line = 0; line < height; ++line) {
            for (std::size_t i = 0; i < columns.size(); ++i)
                text += "  " + pad(line < cells[i].size() ? cells[i][line] : std::string(),
                                   widths[columns[i]], columns_[columns[i]].align);
            text.resize(text.find_last_not_of(' ') + 1);
            if (line + 1 < height) text += '\n';
        }
        return text;
    };
    const std::string titles = text_of([&](std::size_t c) { return columns_[c].title; });
    console.print("{}\n", console.styled(fmt::emphasis::faint, titles));
    for (const auto& row : rows_)
        console.print("{}\n", text_of([&](std::size_t c) { return row[c]; }));
}

}  // namespace reef::tool
