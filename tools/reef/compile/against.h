// A compilation beside the same model as another compiler made it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// Of one compiled model.
struct CompiledFigures {
    std::size_t file_bytes = 0;
    std::size_t programs = 0;
    std::size_t operators_on_chip = 0;  ///< of the plain model
    std::uint64_t cycles = 0;           ///< estimated, of an inference
    double milliseconds = 0;            ///< ... with transfers
    std::uint64_t to_chip_bytes = 0;    ///< with an inference
};

/// Operators of the plain model of one name.
struct PlacementRow {
    std::string name;
    std::size_t count = 0;
    std::size_t on_chip = 0;  ///< by this compiler
    std::size_t on_chip_there = 0;
};

struct Against {
    std::string path;  ///< of the other one's model
    CompiledFigures here, there;
    std::vector<PlacementRow> rows;
};

/// `there`: compiled from the same plain model, for the same family; operators of the plain model
/// that it does not have any more are taken to be in its programs. Errors: bad_argument where it is
/// plain or of another model; those of reading its programs.
[[nodiscard]] Result<Against> compare_against(const model::Model& plain,
                                              const chip::Compilation& here, std::size_t here_bytes,
                                              const std::string& there, std::string_view family);

void print_against(Console& console, const Against& against);
[[nodiscard]] Json against_json(const Against& against);

/// The model as the vendor's own compiler makes it, where that is installed: a file in `folder`.
/// Errors: unsupported for a family without one, or where it is not installed; io_failed where it
/// fails.
[[nodiscard]] Result<std::string> compile_with_vendor(const chip::Compiler& compiler,
                                                      const std::string& model,
                                                      const std::string& folder);

}  // namespace reef::tool
