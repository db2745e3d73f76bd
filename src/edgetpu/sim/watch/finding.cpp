#include <fmt/format.h>

#include <array>
#include <bit>

#include "reef/edgetpu/simulator.h"

namespace reef::edgetpu {
namespace {

std::string place(const Finding& finding) {
    std::string text = finding.memory;
    if (finding.kind != FindingKind::left_over) text += fmt::format(" {:#x}", finding.address);
    if (finding.tiles == 0) return text + " of the scalar core";
    const int first = std::countr_zero(finding.tiles);
    if (std::has_single_bit(finding.tiles)) return text + fmt::format(" of tile {}", first);
    return text + fmt::format(" of tile {} (tiles {:#06x})", first, finding.tiles);
}

struct KindNames {
    std::string_view identifier;
    std::string_view sentence;
};

/// In the order of FindingKind.
constexpr auto kind_names = std::to_array<KindNames>({
    {"unwritten_read", "reads what nothing wrote"},
    {"outside_bound", "leaves the declared narrow memory"},
    {"row_never_read", "parameter row that nothing reads"},
    {"read_twice", "reads a second time what known programs read once"},
    {"overwritten_unread", "overwrites what nothing has read"},
    {"left_over", "left over at the end"},
    {"hazard", "unordered accesses"},
});
static_assert(kind_names.size() == static_cast<std::size_t>(FindingKind::hazard) + 1);

}  // namespace

std::string_view to_string(FindingKind kind) {
    return kind_names[static_cast<std::size_t>(kind)].sentence;
}

std::string_view identifier_of(FindingKind kind) {
    return kind_names[static_cast<std::size_t>(kind)].identifier;
}

std::string message(const Finding& finding) {
    std::string text = fmt::format("{}: {}", to_string(finding.kind), place(finding));
    if (!finding.instruction.empty()) text += ", " + finding.instruction;
    if (!finding.other.empty()) text += " and " + finding.other;
    if (finding.times > 1) text += fmt::format(", {} times", finding.times);
    if (finding.not_listed > 0)
        text += fmt::format("; {} more findings are not listed", finding.not_listed);
    return text;
}

}  // namespace reef::edgetpu
