// The way of the scalar core through a stream: which instruction comes next, through branches and
// loops, and which tiles it is issued to. Nothing but the scalar core runs: scalar memory that the
// ring would fill keeps its old contents, by which no known program decides where it goes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "scalar_core.h"

namespace reef::edgetpu::sim {

/// A bound for programs that run in circles: 64 streams of the longest kind, one word an
/// instruction.
inline constexpr std::uint64_t most_path_instructions = 1 << 20;
/// The same for those who keep what is issued, of tile instructions and transfers: the longest
/// known program has 3166, and the LSTM's loop executes more of them than that.
inline constexpr std::size_t most_kept_instructions = 1 << 15;

/// One instruction that the scalar core came by.
struct PathStep {
    const Instruction& instruction;
    TileIssue issue;  ///< `issued` also of scalar instructions, whose gate it says
    Effect effect;    ///< of those that the scalar core executes itself
};

/// Follows one stream from its begin. `find(word)` gives the instruction that begins there, or
/// nullptr; `visit(step)` gives a Status, and ends the way with an error. Registers, predicates and
/// scalar memory stay as the stream before left them. False: no halt within `instructions_left`,
/// which counts down. After an error `core.program_counter()` is the word that it is about.
/// Errors: those of ScalarCore and of `visit`; bad_input where no instruction begins.
template <class Find, class Visit>
[[nodiscard]] Result<bool> follow_path(ScalarCore& core, std::uint64_t& instructions_left,
                                       Find&& find, Visit&& visit) {
    core.begin_stream();
    for (; instructions_left > 0; --instructions_left) {
        const Instruction* at = find(core.program_counter());
        if (at == nullptr)
            return fail(Cause::bad_input, "no instruction begins here",
                        fmt::format("word {:#x}", core.program_counter()));
        PathStep step{*at, {}, {}};
        if (at->info->space == Space::scalar)
            step.issue.issued = core.gate_open(*at);
        else
            step.issue = REEF_TRY(core.issue(*at));
        if (!ScalarCore::executes(*at)) {
            REEF_CHECK(visit(std::as_const(step)));
            core.pass(*at);
            continue;
        }
        step.effect = REEF_TRY(core.execute(*at));
        REEF_CHECK(visit(std::as_const(step)));
        if (step.effect.halted) return true;
    }
    return false;
}

/// `find` for the instructions of a stream as decode() gives them, in order.
[[nodiscard]] inline auto by_word(std::span<const Instruction> instructions) {
    return [instructions](std::size_t word) -> const Instruction* {
        const auto found = std::ranges::lower_bound(instructions, word, {}, &Instruction::word);
        return found == instructions.end() || found->word != word ? nullptr : &*found;
    };
}

}  // namespace reef::edgetpu::sim
