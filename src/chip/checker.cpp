#include "reef/chip/checker.h"

#include <fmt/format.h>

namespace reef::chip {

CheckReport report_of(const std::vector<CompiledOperator>& operators) {
    CheckReport out;
    std::size_t taken = 0;
    Array all;
    for (const CompiledOperator& op : operators) {
        Object one{{"index", op.index}, {"name", op.name}, {"on_chip", op.on_chip}};
        taken += op.on_chip ? 1 : 0;
        if (!op.on_chip) {
            one.emplace_back("reason", op.reason);
            out.findings.push_back({"not-on-chip", fmt::format("operator {} {}", op.index, op.name),
                                    op.reason, false});
        }
        all.emplace_back(std::move(one));
    }
    Section section{.title = "operators", .about = {}, .lines = {}};
    section.add("on the chip", fmt::format("{} of {}", taken, operators.size()));
    out.sections.push_back(std::move(section));
    out.document = {{"operators", std::move(all)}};
    return out;
}

}  // namespace reef::chip
