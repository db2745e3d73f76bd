#include "outputs/text_table.h"

#include <algorithm>
#include <cassert>

namespace reef::tool {
namespace {

/// Three significant digits before the unit.
std::string scaled_text(double value, std::string_view unit) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
}

std::string pad(const std::string& text, std::size_t width, Align align) {
    const std::string space(width - std::min(width, display_width(text)), ' ');
    return align == Align::left ? text + space : space + text;
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

void TextTable::print(Console& console) const {
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) widths.push_back(display_width(column.title));
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            widths[c] = std::max(widths[c], display_width(row[c]));
        }
    }
    const auto line_of = [&](const auto& cell) {
        std::string line;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            line += "  " + pad(cell(c), widths[c], columns_[c].align);
        }
        line.resize(line.find_last_not_of(' ') + 1);
        return line;
    };
    const std::string titles = line_of([&](std::size_t c) { return columns_[c].title; });
    console.print("{}\n", console.styled(fmt::emphasis::faint, titles));
    for (const auto& row : rows_) {
        console.print("{}\n", line_of([&](std::size_t c) { return row[c]; }));
    }
}

std::string bytes_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (bytes < 1000) return fmt::format("{} B", bytes);
    if (value < 999.5e3) return scaled_text(value / 1e3, "kB");
    if (value < 999.5e6) return scaled_text(value / 1e6, "MB");
    return scaled_text(value / 1e9, "GB");
}

std::string count_text(std::int64_t count) {
    const auto value = static_cast<double>(count);
    if (count < 10000) return fmt::format("{}", count);
    if (value < 999.5e3) return scaled_text(value / 1e3, "k");
    if (value < 999.5e6) return scaled_text(value / 1e6, "M");
    return scaled_text(value / 1e9, "G");
}

std::string duration_text(double seconds) {
    if (seconds < 999.5e-6) return scaled_text(seconds * 1e6, "us");
    if (seconds < 999.5e-3) return scaled_text(seconds * 1e3, "ms");
    return scaled_text(seconds, "s");
}

std::string plural(std::size_t count, std::string_view singular) {
    return fmt::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

}  // namespace reef::tool
