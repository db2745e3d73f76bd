#include "rk3588/stream/stream_check.h"

#include <fmt/format.h>

#include "reef/rk3588/command_words.h"
#include "rk3588/regs/register_set.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588 {
namespace {

class StreamChecker {
  public:
    std::vector<StreamFault> run(Bytes stream) {
        hw::InstructionCursor cursor(command_words(), stream);
        while (const auto word = cursor.next()) {
            if (word->info == nullptr) {
                add(*word, word->bytes.size() < word_bytes
                               ? "the stream ends within a word"
                               : "no register has " + command_words().opcode_text(word->bytes));
                continue;
            }
            check_fields(*word);
            follow(*word);
        }
        if (open_) faults_.push_back({stream.size() / word_bytes, "the last task has no op_en"});
        return std::move(faults_);
    }

  private:
    void add(const hw::Instruction& word, std::string what, bool unmodelled = false) {
        faults_.push_back({word.word, std::move(what), unmodelled});
    }

    void check_fields(const hw::Instruction& word) {
        for (const auto& field : word.info->fields) {
            const auto bits = word.bits(field);
            if (field.only < 0 || bits == static_cast<unsigned>(field.only)) continue;
            if (field.name == "target") {
                add(word, fmt::format("{} has target {:#x}, its own is {:#x}", word.info->name,
                                      bits, field.only));
            } else {
                add(word,
                    fmt::format("{}.{} is {:#x}, only {:#x} is simulated", word.info->name,
                                field.name, bits, field.only),
                    true);
            }
        }
    }

    void follow(const hw::Instruction& word) {
        const auto index = static_cast<std::size_t>(word.info - spec::instructions);
        if (index == spec::op::MARK) {
            const auto target = static_cast<unsigned>(word.value("target").value_or(0));
            marked_ = target == spec::value::target::MARK_;
            if (!marked_ && target != spec::value::target::NONE_)
                add(word, fmt::format("target {:#x} has no register 0", target));
            return;
        }
        if (index == spec::op::OP_EN) {
            if (!marked_) add(word, "no mark stands in front of op_en");
            open_ = false;
        } else {
            open_ = true;
        }
        marked_ = false;
    }

    std::vector<StreamFault> faults_;
    bool marked_ = false;
    bool open_ = false;  ///< words of a task that has not ended
};

}  // namespace

std::vector<StreamFault> check_stream(Bytes stream) {
    return StreamChecker().run(stream);
}

}  // namespace reef::rk3588
