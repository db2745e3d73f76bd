#include "rk3588/stream/container.h"

#include <algorithm>
#include <cstring>

#include "reef/rk3588/command_words.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {
namespace {

/// Least words of a task: one register and the tail.
constexpr std::size_t least_words = 5;

enum class Kind : std::uint8_t { none, gap, mark, op_en, register_write };

Kind kind_of(Bytes word) {
    std::uint64_t bits;
    std::memcpy(&bits, word.data(), sizeof bits);
    if (bits == 0) return Kind::gap;
    const auto* info = command_words().instruction_of(word);
    if (info == nullptr) return Kind::none;
    const auto index = static_cast<std::size_t>(info - spec::instructions);
    const auto target = bits >> 48;
    if (index == spec::op::MARK)
        return target == spec::value::target::MARK_ ? Kind::mark : Kind::none;
    if (target != static_cast<std::uint64_t>(info->find("target")->only)) return Kind::none;
    return index == spec::op::OP_EN ? Kind::op_en : Kind::register_write;
}

}  // namespace

bool is_vendor_container(Bytes file) {
    return file.size() >= 8 && as_text(file.first(4)) == "RKNN";
}

std::vector<StoredTask> stored_tasks(Bytes file) {
    std::vector<StoredTask> out;
    std::size_t begin = 0;
    std::size_t words = 0;
    Kind before = Kind::none;
    for (std::size_t at = 0; at + word_bytes <= file.size(); at += word_bytes) {
        const Kind kind = kind_of(file.subspan(at, word_bytes));
        // Gaps lie between tasks; within one they hold the place of the next task's address.
        if (words == 0 && kind != Kind::register_write) continue;
        if (words == 0) begin = at;
        ++words;
        if (kind == Kind::op_en && before == Kind::mark && words >= least_words)
            out.push_back({begin, words * word_bytes});
        const bool two_gaps = kind == Kind::gap && before == Kind::gap;
        if (kind == Kind::none || kind == Kind::op_en || two_gaps) words = 0;
        before = kind;
    }
    return out;
}

}  // namespace reef::rk3588
