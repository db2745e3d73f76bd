#include "issue_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/program/codec.h"
#include "edgetpu/sim/core/program_path.h"

namespace reef::edgetpu::check {
namespace {

std::uint64_t whole_units(std::uint64_t bytes) {
    constexpr std::uint64_t unit = 8;
    return (bytes + unit - 1) / unit * unit;
}

std::string unfollowed(const Error& error) {
    return "the order of issue cannot be followed: " + error.message();
}

/// Follows the chunks; the first fault ends it. `visit`: as follow_path()'s, with the chunk and the
/// stream's instructions.
template <class Visit>
std::optional<ProgramFault> follow(std::span<const Bytes> chunks, Visit&& visit) {
    sim::ScalarCore core;
    std::uint64_t left = sim::most_path_instructions;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
        const auto instructions = decode(chunks[chunk]);
        if (!instructions)
            return ProgramFault{chunk, 0, unfollowed(instructions.error()),
                                instructions.error().cause == Cause::unsupported};
        const auto halted = sim::follow_path(
            core, left, sim::by_word(*instructions),
            [&](const sim::PathStep& step) { return visit(chunk, *instructions, step); });
        if (halted && *halted) continue;
        const Error error =
            halted
                ? Error{Cause::bad_input,
                        fmt::format("no halt within {} instructions", sim::most_path_instructions),
                        {},
                        {}}
                : halted.error();
        return ProgramFault{chunk, core.program_counter(), unfollowed(error),
                            error.cause == Cause::unsupported};
    }
    return std::nullopt;
}

/// Keeps what is issued.
class Recorder {
  public:
    Status operator()(std::size_t chunk, const std::vector<Instruction>& instructions,
                      const sim::PathStep& step) {
        if (chunk == out.operations.size()) {
            out.operations.emplace_back().reserve(instructions.size());  // so that none moves
            decoded_.assign(instructions.size(), nullptr);
        }
        if (sim::ScalarCore::executes(step.instruction)) {
            note(step.effect);
            return {};
        }
        const auto index = static_cast<std::size_t>(&step.instruction - instructions.data());
        if (decoded_[index] == nullptr)
            decoded_[index] =
                &out.operations[chunk].emplace_back(program::decode(step.instruction).operation);
        if (!step.issue.issued) return {};
        if (out.instructions.size() == sim::most_kept_instructions)
            return fail(Cause::bad_input,
                        fmt::format("more than {} instructions", sim::most_kept_instructions));
        out.instructions.push_back({step.instruction, decoded_[index], chunk, step.issue.tiles});
        return {};
    }
    IssueOrder out;

  private:
    void note(const sim::Effect& effect) {
        if (effect.fired) {
            const auto tag = static_cast<std::size_t>(effect.fired->tag);
            if (tag < out.bytes_by_tag.size())
                out.bytes_by_tag[tag] += whole_units(effect.fired->bytes);
        }
        if (effect.to_host) ++out.words_to_host;
    }

    std::vector<const program::Operation*> decoded_;  ///< of this chunk, by instruction
};

}  // namespace

IssueOrder issue_order(std::span<const Bytes> chunks) {
    Recorder recorder;
    if (auto fault = follow(chunks, recorder)) recorder.out.faults.push_back(std::move(*fault));
    return std::move(recorder.out);
}

std::optional<ProgramFault> first_fault_of_order(std::span<const Bytes> chunks) {
    return follow(chunks, [](auto&&...) { return Status{}; });
}

}  // namespace reef::edgetpu::check
