// A compiled program read with a plain model of its architecture whose numbers are others.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "edgetpu/params/program_alignment.h"
#include "reef/base/result.h"
#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {

inline constexpr std::string_view hint_for_source =
    "give the plain model that it was compiled from: reef retarget --like";

/// Every tensor instruction whose values depend on scales, and the index of its role.
struct RecoveredProgram {
    std::vector<TensorInstruction> instructions;
    std::vector<std::size_t> roles;
};

struct Recovered {
    CompiledParameters parameters;  ///< parts have the vectors and places of the program
    RecoveredProgram program;
};

/// Whether the compiled model computes the plain one that it was opened with: all its parameters
/// are there, instructions hold its values, and inputs and outputs have its scales.
[[nodiscard]] Result<bool> is_compiled_from(const CompiledParameters& opened);

/// Refuses a plain model with layers whose values no instruction holds.
[[nodiscard]] Status check_source(const CompiledParameters& opened);

/// Finds the place of every operator's values by the order and the form of instructions and
/// parameters. Errors: unsupported, with the instruction or the operator that stays unclear.
[[nodiscard]] Result<Recovered> recover_program(const CompiledParameters& opened);

}  // namespace reef::edgetpu
