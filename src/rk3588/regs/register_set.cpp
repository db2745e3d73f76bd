#include "rk3588/regs/register_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::uint64_t word_of(std::uint64_t target, std::uint32_t value, std::uint32_t offset) {
    return target << 48 | std::uint64_t{value} << 16 | offset;
}

const hw::FieldInfo& target_field(const hw::InstructionInfo& info) {
    return *std::ranges::find(info.fields, "target", &hw::FieldInfo::name);
}

std::uint64_t target_of(RegisterIndex index) {
    return static_cast<std::uint64_t>(target_field(spec::instructions[index]).only);
}

void add_tail(std::vector<std::uint64_t>& words, std::uint32_t blocks, const NextTask& next) {
    // Where no task follows, generators write a word without effect in place of the address.
    words.push_back(
        next.address == 0 ? 0 : register_word(register_named("PC_BASE_ADDRESS"), next.address));
    words.push_back(register_word(register_named("PC_REGISTER_AMOUNTS"),
                                  next.address == 0 ? 0 : amount_of(next.words)));
    words.push_back(word_of(spec::value::target::MARK_, 0, 0));
    words.push_back(register_word(register_named("OP_EN"), blocks));
}

}  // namespace

void RegisterSet::set(const FieldPlace& place, std::int64_t value) {
    written_.set(place.index);
    const auto low = place.is_signed ? -(std::int64_t{1} << (place.width - 1)) : 0;
    const auto high = std::int64_t{1} << (place.is_signed ? place.width - 1 : place.width);
    if (value < low || value >= high) {
        const auto& info = spec::instructions[place.index];
        if (!refusal_)
            refusal_ = Error{Cause::unsupported,
                             fmt::format("{} does not fit {} bits", value, place.width),
                             fmt::format("{}.{}", info.name, info.fields[place.field].name),
                             fmt::format("the field takes {} to {}", low, high - 1)};
        return;
    }
    const auto mask = place.mask() << place.shift;
    values_[place.index] =
        (values_[place.index] & ~mask) | (static_cast<std::uint32_t>(value) << place.shift & mask);
}

std::uint64_t register_word(RegisterIndex index, std::uint32_t value) {
    return word_of(target_of(index), value, spec::instructions[index].opcode);
}

Result<std::vector<std::uint64_t>> task_words(const RegisterSet& registers,
                                              std::span<const RegisterIndex> order,
                                              std::uint32_t blocks, const NextTask& next,
                                              std::span<const RepeatedRegister> repeated) {
    if (registers.refusal()) return std::unexpected(*registers.refusal());
    if (next.address % 16 != 0)
        return fail(Cause::bad_argument, fmt::format("a task at {:#x} cannot follow", next.address),
                    {}, "tasks begin at multiples of 16 bytes");
    for (RegisterIndex i = 0; i < register_count; ++i)
        if (registers.is_written(i) && std::ranges::find(order, i) == order.end())
            return fail(Cause::bad_argument, fmt::format("{} is set and not in the order of words",
                                                         spec::instructions[i].name));
    std::vector<std::uint64_t> words;
    words.reserve(order.size() + spec::tail_words);
    std::vector<std::size_t> written(repeated.size());
    for (const RegisterIndex index : order) {
        std::uint32_t value = registers.value(index);
        for (std::size_t i = 0; i < repeated.size(); ++i)
            if (repeated[i].index == index) value = repeated[i].values[written[i]++];
        words.push_back(register_word(index, value));
    }
    add_tail(words, blocks, next);
    return words;
}

Result<std::vector<std::uint64_t>> task_words(const RegisterSet& registers, std::uint32_t blocks,
                                              const NextTask& next) {
    std::vector<RegisterIndex> order;
    for (RegisterIndex i = 0; i < register_count; ++i)
        if (registers.is_written(i)) order.push_back(i);
    return task_words(registers, order, blocks, next);
}

}  // namespace reef::rk3588
