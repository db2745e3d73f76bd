#include "rk3588/stream/task.h"

#include <fmt/format.h>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

std::uint32_t value_in(const hw::Instruction& word) {
    std::uint64_t bits;
    std::memcpy(&bits, word.bytes.data(), sizeof bits);
    return static_cast<std::uint32_t>(bits >> 16);
}

std::unexpected<Error> refused(const hw::Instruction& word, std::string what,
                               std::string hint = {}) {
    return fail(Cause::bad_input, std::move(what), fmt::format("word {:#x}", word.word),
                std::move(hint));
}

Status check_target(const hw::Instruction& word) {
    const auto target = static_cast<unsigned>(word.value("target").value_or(0));
    const int own = word.info->find("target")->only;
    if (own < 0) {
        using namespace spec::value::target;
        if (target == MARK_ || target == NONE_) return {};
        return refused(word, fmt::format("target {:#x} has no register 0", target));
    }
    if (target == static_cast<unsigned>(own)) return {};
    return refused(word, fmt::format("{} with target {:#x}", word.info->name, target),
                   fmt::format("words of this register have target {:#x}", own));
}

/// LUT_ACCESS_CFG says which entry the next word of LUT_ACCESS_DATA writes; each moves on by one.
class TableAccess {
  public:
    void see(RegisterIndex written, Task& task) {
        const RegisterSet& r = task.registers;
        if (written == register_named("DPU_LUT_ACCESS_CFG"))
            next_ = {static_cast<std::uint8_t>(r.get<"DPU_LUT_ACCESS_CFG.LUT_TABLE_ID">()),
                     static_cast<std::uint16_t>(r.get<"DPU_LUT_ACCESS_CFG.LUT_ADDR">()), 0};
        const bool writes = r.get<"DPU_LUT_ACCESS_CFG.LUT_ACCESS_TYPE">() != 0;
        if (written != register_named("DPU_LUT_ACCESS_DATA") || !writes) return;
        next_.value =
            static_cast<std::int16_t>(r.get_signed<"DPU_LUT_ACCESS_DATA.LUT_ACCESS_DATA">());
        task.tables.push_back(next_);
        ++next_.entry;
    }

  private:
    TableWrite next_;
};

}  // namespace

Result<Task> read_task(Bytes stream) {
    Task task;
    TableAccess tables;
    bool marked = false;
    hw::InstructionCursor cursor(command_words(), stream);
    while (const auto word = cursor.next()) {
        if (word->info == nullptr)
            return refused(*word,
                           word->bytes.size() < word_bytes
                               ? "the task ends within a word"
                               : "no register has " + command_words().opcode_text(word->bytes),
                           "reef disasm --data shows such words");
        REEF_CHECK(check_target(*word));
        const auto index = static_cast<RegisterIndex>(word->info - spec::instructions);
        ++task.words;
        if (index == spec::op::MARK) {
            marked = word->value("target") == spec::value::target::MARK_;
            continue;
        }
        if (index == spec::op::OP_EN) {
            if (!marked) return refused(*word, "no mark stands in front of op_en");
            task.blocks = value_in(*word);
            task.next_address = task.registers.get<"PC_BASE_ADDRESS.PC_SOURCE_ADDR">() * 16;
            task.next_words =
                2 * (std::size_t{task.registers.get<"PC_REGISTER_AMOUNTS.PC_DATA_AMOUNT">()} + 1);
            return task;
        }
        marked = false;
        task.registers.write(index, value_in(*word));
        tables.see(index, task);
    }
    return fail(Cause::bad_input, "the task has no op_en",
                fmt::format("word {:#x}", stream.size() / word_bytes));
}

}  // namespace reef::rk3588
