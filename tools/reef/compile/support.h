// What the compilers of this build take: their verdicts on networks of one operator each.
#pragma once

#include <string>
#include <vector>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/base/result.h"

namespace reef::tool {

struct CompilerSupport {
    struct Row {
        std::string name, variant;
        /// For each chip: "yes", or why the operator stays with the CPU.
        std::vector<std::string> verdicts;
    };
    std::vector<std::string> chips;  ///< families
    std::vector<Row> rows;
};

/// Errors: those of the compilers.
[[nodiscard]] Result<CompilerSupport> compiler_support();

void print_table(Console& console, const CompilerSupport& support);
void print_markdown(Console& console, const CompilerSupport& support);
[[nodiscard]] Json to_json(const CompilerSupport& support);

}  // namespace reef::tool
