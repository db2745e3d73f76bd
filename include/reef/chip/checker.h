// Checks without running anything: of files that were made for a chip, by what the file is, and of
// plain models against what a chip takes, by the chip that is named.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/chip/file_kind.h"
#include "reef/chip/part.h"
#include "reef/chip/report.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// A rule that is broken, or something to know that breaks none.
struct Finding {
    std::string rule;   ///< stable, lower case with dashes: "overlap"
    std::string place;  ///< in the file: an operator, a tensor, an offset; may be empty
    std::string what;   ///< a clause
    bool fault = true;  ///< false: no rule is broken
};

struct CheckReport {
    std::vector<Finding> findings;
    std::vector<Section> sections;  ///< what was checked, with numbers
    Object document;                ///< the same for programs

    [[nodiscard]] bool passed() const {
        return std::ranges::none_of(findings, [](const Finding& one) { return one.fault; });
    }
};

/// Of files of one kind, enrolled as a part of a family of chips. Compiled TFLite models need none:
/// Disassembler::check() is theirs.
class FileChecker : public FileKind {
  public:
    /// What is read but breaks a rule is a finding. Errors: files that cannot be read at all.
    [[nodiscard]] virtual Result<CheckReport> check(const SharedBytes& file) const = 0;
};

/// Of plain models against a chip, found by its family (`reef check NET --target FAMILY`): a
/// verdict for each operator without compiling, from the predicates that the chip's compiler uses.
class TargetChecker : public Part {
  public:
    /// The chip's, for people.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// A finding for each operator that the chip does not take, with its reason; it is a fault only
    /// where the model cannot run at all. Errors: models that are compiled already.
    [[nodiscard]] virtual Result<CheckReport> check(const model::Model& model) const = 0;
};

/// What a compiler takes of a model, as such a check: a note for each operator that it leaves.
[[nodiscard]] CheckReport report_of(const std::vector<CompiledOperator>& operators);

}  // namespace reef::chip
