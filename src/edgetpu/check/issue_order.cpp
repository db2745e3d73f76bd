#include "issue_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/program/codec.h"
#include "edgetpu/sim/core/scalar_core.h"

namespace reef::edgetpu::check {
namespace {

// Bounds for programs that run in circles. The longest known program has 3166 instructions; the
// LSTM's loop executes more of them than that.
constexpr std::uint64_t most_executed = 1 << 20;
constexpr std::size_t most_issued = 1 << 15;

std::uint64_t whole_units(std::uint64_t bytes) {
    constexpr std::uint64_t unit = 8;
    return (bytes + unit - 1) / unit * unit;
}

class Follower {
  public:
    IssueOrder run(std::span<const Bytes> chunks) {
        for (chunk_ = 0; chunk_ < chunks.size() && out_.faults.empty(); ++chunk_) {
            auto instructions = decode(chunks[chunk_]);
            if (!instructions)
                fault(0, instructions.error());
            else
                follow(*instructions);
        }
        return std::move(out_);
    }

  private:
    void fault(std::size_t word, const std::string& what, bool unmodelled = false) {
        out_.faults.push_back(
            {chunk_, word, "the order of issue cannot be followed: " + what, unmodelled});
    }
    void fault(std::size_t word, const Error& error) {
        fault(word, error.message(), error.cause == Cause::unsupported);
    }

    void follow(const std::vector<Instruction>& instructions) {
        core_.begin_stream();
        auto& operations = out_.operations.emplace_back();
        operations.reserve(instructions.size());  // so that none moves
        std::vector<const program::Operation*> decoded(instructions.size());
        while (left_-- > 0) {
            const auto word = core_.program_counter();
            const auto found = std::ranges::lower_bound(instructions, word, {}, &Instruction::word);
            if (found == instructions.end() || found->word != word)
                return fault(word, "no instruction begins here");
            if (!sim::ScalarCore::executes(*found)) {
                const auto index = static_cast<std::size_t>(found - instructions.begin());
                if (decoded[index] == nullptr)
                    decoded[index] = &operations.emplace_back(program::decode(*found).operation);
                if (!issue(*found, *decoded[index])) return;
                core_.pass(*found);
                continue;
            }
            const auto effect = core_.execute(*found);
            if (!effect) return fault(word, effect.error());
            if (effect->fired) {
                const auto tag = static_cast<std::size_t>(effect->fired->tag);
                if (tag < out_.bytes_by_tag.size())
                    out_.bytes_by_tag[tag] += whole_units(effect->fired->bytes);
            }
            if (effect->to_host) ++out_.words_to_host;
            if (effect->halted) return;
        }
        fault(core_.program_counter(),
              fmt::format("no halt within {} instructions", most_executed));
    }

    bool issue(const Instruction& instruction, const program::Operation& operation) {
        if (out_.instructions.size() == most_issued) {
            fault(instruction.word, fmt::format("more than {} instructions", most_issued));
            return false;
        }
        if (instruction.info->space == Space::scalar) {
            if (core_.gate_open(instruction))
                out_.instructions.push_back({instruction, &operation, chunk_, 0});
            return true;
        }
        const auto issued = core_.issue(instruction);
        if (!issued) {
            fault(instruction.word, issued.error());
            return false;
        }
        if (issued->issued)
            out_.instructions.push_back({instruction, &operation, chunk_, issued->tiles});
        return true;
    }

    sim::ScalarCore core_;
    IssueOrder out_;
    std::size_t chunk_ = 0;
    std::uint64_t left_ = most_executed;
};

}  // namespace

IssueOrder issue_order(std::span<const Bytes> chunks) {
    return Follower().run(chunks);
}

}  // namespace reef::edgetpu::check
