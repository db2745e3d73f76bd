#include <fmt/format.h>

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

}  // namespace

std::string_view to_string(FindingKind kind) {
    switch (kind) {
        case FindingKind::unwritten_read:
            return "reads what nothing wrote";
        case FindingKind::outside_bound:
            return "leaves the declared narrow memory";
        case FindingKind::row_never_read:
            return "parameter row that nothing reads";
        case FindingKind::read_twice:
            return "reads a second time what known programs read once";
        case FindingKind::overwritten_unread:
            return "overwrites what nothing has read";
        case FindingKind::left_over:
            return "left over at the end";
        case FindingKind::hazard:
            return "unordered accesses";
    }
    return "";
}

std::string_view identifier_of(FindingKind kind) {
    switch (kind) {
        case FindingKind::unwritten_read:
            return "unwritten_read";
        case FindingKind::outside_bound:
            return "outside_bound";
        case FindingKind::row_never_read:
            return "row_never_read";
        case FindingKind::read_twice:
            return "read_twice";
        case FindingKind::overwritten_unread:
            return "overwritten_unread";
        case FindingKind::left_over:
            return "left_over";
        case FindingKind::hazard:
            return "hazard";
    }
    return "";
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
