// A compiled program read with a plain model of its architecture whose numbers are others.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "edgetpu/retarget/operator_matching.h"
#include "edgetpu/retarget/program_alignment.h"
#include "edgetpu/retarget/program_flow.h"
#include "reef/base/result.h"
#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {

inline constexpr std::string_view hint_for_source =
    "give the plain model that it was compiled from: reef retarget --like";

/// A tensor instruction whose values depend on scales.
struct MatchedInstruction {
    TensorInstruction at;
    std::size_t role = 0;  ///< index
    /// Of a sum: whether it takes the operator's second input first, if that is known.
    std::optional<bool> second_first;
    std::vector<BlobRange> rows;  ///< of parameters that it reads; size_bytes is 0
};
using MatchedProgram = std::vector<MatchedInstruction>;

struct Recovered {
    CompiledParameters parameters;  ///< parts have the vectors and places of the program
    MatchedProgram program;
};

/// Whether sums take the second input first: never in programs of Reef's compiler. Nothing: it is
/// not known of all.
[[nodiscard]] inline std::optional<bool> order_of_operands(const CompiledParameters& opened) {
    return opened.is_own() ? std::optional(false) : std::nullopt;
}

/// Refuses a plain model of other inputs and outputs than the compiled one's, and programs that run
/// in circles.
[[nodiscard]] Status check_template(const CompiledParameters& opened);

/// Refuses operators on the chip whose values are not known: without the source nothing says
/// whether they are the plain model's.
[[nodiscard]] Status check_readable(const CompiledParameters& opened);

/// The instructions of a compiled model that computes the plain one that it was opened with: all
/// its parameters are there, the instructions that compute an operator hold its values, and inputs
/// and outputs have its scales. Nothing: it computes another.
[[nodiscard]] Result<std::optional<MatchedProgram>> program_of_plain(
    const CompiledParameters& opened, const ProgramFlow& flow);

/// Refuses a plain model with layers whose values no instruction holds.
[[nodiscard]] Status check_source(const CompiledParameters& opened);

/// The instructions of a program that holds the values of `roles`, told apart by where their data
/// come from and go to. Errors: those of match_operators().
[[nodiscard]] Result<MatchedProgram> match_program(const CompiledParameters& opened,
                                                   const ProgramFlow& flow,
                                                   const std::vector<Requantisation>& roles,
                                                   const MatchingRules& rules);

/// Finds the place of every operator's values by the form of instructions, by where their data come
/// from and go to, and by which rows of parameters they read. Errors: unsupported, with the
/// instruction or the operator that stays unclear.
[[nodiscard]] Result<Recovered> recover_program(const CompiledParameters& opened,
                                                const ProgramFlow& flow);

}  // namespace reef::edgetpu
