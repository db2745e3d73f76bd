#include "reef/edgetpu/program_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/isa/instruction_kind.h"

namespace reef::edgetpu {
namespace {

constexpr std::size_t empty_bundles_after_halt = 4;
constexpr std::size_t most_words = 1 << 14;     // besides start and end
constexpr std::int64_t bits_not_counted = 256;  // start and end
constexpr std::int64_t numbers = 1 << 15;

bool is_empty_bundle(const Instruction& instruction) {
    return is(instruction, spec::op::bundle) &&
           std::ranges::all_of(instruction.info->fields,
                               [&](const FieldInfo& f) { return instruction.bits(f) == 0; });
}

class Checker {
  public:
    std::vector<ProgramFault> run(std::span<const Bytes> chunks) {
        for (chunk_ = 0; chunk_ < chunks.size(); ++chunk_) {
            instructions_.clear();
            InstructionCursor cursor(chunks[chunk_]);
            while (const auto instruction = cursor.next()) instructions_.push_back(*instruction);
            check_words();
            check_start(chunks[chunk_].size());
            check_end();
            if (chunks.size() > 1) check_continuation(chunk_ + 1 < chunks.size());
            check_numbers();
            check_flow();
        }
        return std::move(faults_);
    }

  private:
    template <typename... Args>
    void fault(std::size_t word, fmt::format_string<Args...> format, Args&&... args) {
        faults_.push_back({chunk_, word, fmt::format(format, std::forward<Args>(args)...)});
    }

    void check_words() {
        for (const auto& instruction : instructions_) {
            if (instruction.info) continue;
            if (instruction.bytes.size() < word_bytes)
                fault(instruction.word, "{} bytes after the last whole word",
                      instruction.bytes.size());
            else
                fault(instruction.word, "the word is no instruction");
        }
    }

    void check_start(std::size_t size) {
        if (instructions_.empty()) return fault(0, "the stream is empty");
        const auto& first = instructions_.front();
        if (!is(first, spec::op::start)) return fault(0, "the stream does not begin with start");
        const auto bits = first.value("bits").value_or(0);
        const auto expected = static_cast<std::int64_t>(size) * 8 - bits_not_counted;
        if (bits != expected)
            fault(0, "start says {} bits, the stream has {} besides start and end", bits, expected);
        if (const auto words = size / word_bytes; words > most_words + 2)
            fault(0, "the stream has {} words besides start and end, more than {}", words - 2,
                  most_words);
    }

    void check_end() {
        std::size_t halts = 0;
        for (const auto& instruction : instructions_) {
            if (!is(instruction, spec::op::halt)) continue;
            if (++halts > 1) fault(instruction.word, "halt occurs again");
        }
        if (instructions_.empty()) return;
        const auto bundles =
            std::find_if_not(instructions_.rbegin() + 1, instructions_.rend(), is_empty_bundle);
        const auto empty = static_cast<std::size_t>(bundles - instructions_.rbegin() - 1);
        // The longest streams leave out those for which there is no room.
        const auto last_word = instructions_.back().word;
        const bool enough = empty == empty_bundles_after_halt ||
                            (empty < empty_bundles_after_halt && last_word == most_words + 1);
        const bool right = enough && is(instructions_.back(), spec::op::end) &&
                           bundles != instructions_.rend() && is(*bundles, spec::op::halt);
        if (!right)
            fault(last_word, "the stream does not end with halt, {} empty bundles and end",
                  empty_bundles_after_halt);
    }

    void check_continuation(bool another_follows) {
        const auto halt = std::ranges::find_if(
            instructions_, [](const Instruction& i) { return is(i, spec::op::halt); });
        if (halt == instructions_.end()) return;
        const bool last = halt->value("last").value_or(0) != 0;
        const bool continues = halt->value("continues").value_or(0) != 0;
        if (last == another_follows || (continues && !another_follows))
            fault(halt->word, "halt says last={} continues={}, and {} stream follows", last,
                  continues, another_follows ? "another" : "no");
    }

    void check_numbers() {
        for (const auto& instruction : instructions_) {
            if (!instruction.info || instruction.info->space != Space::tile) continue;
            const auto number = instruction.value(numbering_field).value_or(-1);
            if (number != next_number_)
                fault(instruction.word, "tile instruction has the number {}, {} is due", number,
                      next_number_);
            next_number_ = (number + 1) % numbers;
        }
    }

    void check_flow() {
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            const auto& instruction = instructions_[i];
            if (is(instruction, spec::op::branch)) check_target(instruction);
            if (is(instruction, spec::op::loop)) check_body(i);
        }
    }

    void check_target(const Instruction& branch) {
        const auto target =
            static_cast<std::int64_t>(branch.word) + branch.value("offset").value_or(0);
        const auto found = std::ranges::lower_bound(
            instructions_, target, {},
            [](const Instruction& i) { return static_cast<std::int64_t>(i.word); });
        if (target < 0 || found == instructions_.end() ||
            static_cast<std::int64_t>(found->word) != target || !found->info)
            fault(branch.word, "the branch goes to word {}, where no instruction begins", target);
    }

    void check_body(std::size_t index) {
        const auto& loop = instructions_[index];
        const auto body = loop.value("body").value_or(0);
        for (std::int64_t n = 1; n <= body; ++n) {
            const auto inside = index + static_cast<std::size_t>(n);
            if (inside < instructions_.size() && is(instructions_[inside], spec::op::bundle))
                continue;
            return fault(loop.word, "the loop repeats {} bundles, of which {} follow", body, n - 1);
        }
    }

    std::vector<Instruction> instructions_;
    std::vector<ProgramFault> faults_;
    std::size_t chunk_ = 0;
    std::int64_t next_number_ = 0;
};

}  // namespace

std::vector<ProgramFault> check_program(std::span<const Bytes> chunks) {
    return Checker().run(chunks);
}

}  // namespace reef::edgetpu
