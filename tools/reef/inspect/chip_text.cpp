#include "inspect/chip_text.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "inputs/chips.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

/// Operators of one name that run in one place for one reason.
struct PlacedRow {
    std::string name;
    const chip::OperatorPlacement* placement;
    std::size_t count = 0;
    std::int64_t macs = 0;
};

std::vector<PlacedRow> rows_of(const model::Subgraph& graph,
                               const std::vector<chip::OperatorPlacement>& placements,
                               const std::vector<model::Cost>& costs) {
    std::vector<PlacedRow> rows;
    std::map<std::pair<std::string, std::string_view>, std::size_t> row_of;
    for (std::size_t i = 0; i < placements.size(); ++i) {
        const std::string name = graph.operators[i].code.name();
        const auto [at, is_new] = row_of.try_emplace({name, placements[i].reason}, rows.size());
        if (is_new) rows.push_back({name, &placements[i]});
        rows[at->second].count += 1;
        rows[at->second].macs += costs[i].macs;
    }
    std::ranges::stable_sort(rows, std::greater(),
                             [](const PlacedRow& row) { return row.placement->on_chip; });
    return rows;
}

std::string placement_text(const std::vector<chip::OperatorPlacement>& placements) {
    const auto on_chip = static_cast<std::size_t>(
        std::ranges::count_if(placements, [](const auto& one) { return one.on_chip; }));
    if (on_chip == 0) return "nothing of this subgraph runs on the chip";
    if (on_chip == placements.size()) return "everything runs on the chip, nothing on the CPU";
    return fmt::format("{} on the chip, {} on the CPU", plural(on_chip, "compiled operator"),
                       plural(placements.size() - on_chip, "operator"));
}

void print_line(Console& console, const chip::Field& field) {
    console.print("  {:<14} {}\n", field.name, printable(in_flags(field.text)));
}

void print_line(Console& console, const chip::Table& table) {
    std::vector<Column> columns;
    for (const auto& [title, number] : table.columns)
        columns.push_back({title, number ? Align::right : Align::left});
    TextTable text(std::move(columns));
    for (const auto& row : table.rows) text.add(row);
    text.print(console);
    if (table.left_out > 0) console.print("  ... and {} more: --all lists them\n", table.left_out);
}

void print_line(Console& console, const chip::Note& note) {
    console.print("  {}\n", printable(in_flags(note.text)));
}

}  // namespace

std::string label_of(const chip::Inspector& inspector) {
    std::string label(inspector.name());
    std::ranges::transform(label, label.begin(), [](unsigned char c) { return std::tolower(c); });
    return label;
}

void print_placement(Console& console, const model::Subgraph& graph, const ChipReport& chip,
                     std::size_t subgraph, const std::vector<model::Cost>& costs) {
    const auto& placements = chip.inspection->placements()[subgraph];
    TextTable table(
        {{"operator"}, {"count", Align::right}, {"MACs", Align::right}, {"runs on"}, {"why"}});
    for (const PlacedRow& row : rows_of(graph, placements, costs)) {
        const bool on_chip = row.placement->on_chip;
        table.add({row.name, std::to_string(row.count),
                   on_chip         ? "inside"
                   : row.macs == 0 ? ""
                                   : count_text(row.macs),
                   on_chip ? std::string(chip.inspector->name()) : "CPU",
                   in_flags(row.placement->reason)});
    }
    console.print("  {:<12} {}\n\n", label_of(*chip.inspector), placement_text(placements));
    table.print(console);
}

void print_mapping(Console& console, const MappingReport& mapping) {
    struct Row {
        std::string name, reason;
        std::vector<std::size_t> operators;
        bool on_chip = false;
    };
    std::vector<Row> rows;
    std::size_t taken = 0;
    for (const chip::CompiledOperator& op : mapping.operators) {
        taken += op.on_chip;
        auto row = std::ranges::find_if(rows, [&](const Row& r) {
            return r.name == op.name && r.reason == op.reason && r.on_chip == op.on_chip;
        });
        if (row == rows.end()) row = rows.insert(rows.end(), {op.name, op.reason, {}, op.on_chip});
        row->operators.push_back(op.index);
    }
    std::ranges::stable_sort(rows, std::greater(), &Row::on_chip);
    const std::string_view family = mapping.compiler->family();
    console.print("\n{}  {} of {} would run on it\n",
                  console.heading(fmt::format("on the {}", chip_name(family))), taken,
                  plural(mapping.operators.size(), "operator"));
    TextTable table(
        {{"operator"}, {"count", Align::right}, {"first", Align::right}, {"where"}, {"why"}});
    for (const Row& row : rows)
        table.add({row.name, std::to_string(row.operators.size()),
                   std::to_string(row.operators.front()), row.on_chip ? chip_name(family) : "CPU",
                   in_flags(row.reason)});
    table.print(console);
    if (taken > 0)
        console.print(
            "  reef compile MODEL --target {} compiles it; what does not fit together "
            "stays on the CPU, too\n",
            family);
}

void print_section(Console& console, const chip::Section& section) {
    console.print("\n{}", console.heading(printable(section.title)));
    if (!section.about.empty()) console.print("  {}", printable(section.about));
    console.write("\n");
    for (const auto& line : section.lines)
        std::visit([&](const auto& one) { print_line(console, one); }, line);
}

}  // namespace reef::tool
