// final.mlir in tests: the module that reads it, and what is said of a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/sophgo/final_engine.h"

namespace reef::sophgo {

/// The module of this build.
[[nodiscard]] const FinalEngine& engine();

/// "rule: place: what" of the findings that are faults, or of the others.
[[nodiscard]] std::vector<std::string> findings_of(const FinalProgram& program, bool faults);
[[nodiscard]] std::vector<std::string> faults_of(const FinalProgram& program);

/// With `to` in each place of `from`.
[[nodiscard]] std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace reef::sophgo
