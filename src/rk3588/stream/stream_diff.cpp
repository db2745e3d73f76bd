#include "rk3588/stream/stream_diff.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/rk3588/command_words.h"

namespace reef::rk3588 {
namespace {

void compare_register(std::size_t task, RegisterIndex index, std::uint32_t before,
                      std::uint32_t after, std::vector<FieldChange>& out) {
    if (before == after) return;
    for (const auto& field : spec::instructions[index].fields) {
        if (field.position < 16 || field.position >= 48) continue;
        const auto bits = [&](std::uint32_t value) {
            return value >> (field.position - 16U) & (~std::uint64_t{0} >> (64 - field.width));
        };
        if (bits(before) != bits(after))
            out.push_back({task, index, &field, bits(before), bits(after)});
    }
}

/// The first entry that differs, where the tasks write the same ones: of words that write one
/// register again and again the last one alone is a register's value.
void compare_tables(std::size_t task, const Task& before, const Task& after,
                    std::vector<FieldChange>& out) {
    constexpr FieldPlace place = field_named("DPU_LUT_ACCESS_DATA.LUT_ACCESS_DATA");
    const auto [a, b] = std::ranges::mismatch(before.tables, after.tables);
    if (a == before.tables.end() || b == after.tables.end()) return;
    if (before.registers.value(place.index) != after.registers.value(place.index)) return;
    const auto bits = [&](const TableWrite& w) {
        return std::uint64_t{static_cast<std::uint32_t>(w.value) & place.mask()};
    };
    const auto* field = &spec::instructions[place.index].fields[place.field];
    out.push_back({task, place.index, field, bits(*a), bits(*b)});
}

}  // namespace

Result<std::vector<Task>> tasks_of(Bytes stream) {
    std::vector<Task> out;
    std::size_t at = 0;
    const auto is_gap = [&] {
        const auto word = stream.subspan(at).first(std::min(word_bytes, stream.size() - at));
        return std::ranges::all_of(word, [](std::byte b) { return b == std::byte{0}; });
    };
    while (at < stream.size()) {
        if (is_gap()) {
            at += std::min(word_bytes, stream.size() - at);
            continue;
        }
        out.push_back(
            REEF_TRY(in_place(read_task(stream.subspan(at)), fmt::format("byte {:#x}", at))));
        at += out.back().words * word_bytes;
    }
    return out;
}

Result<StreamDiff> diff_streams(Bytes before, Bytes after) {
    const auto a = REEF_TRY(in_place(tasks_of(before), "before"));
    const auto b = REEF_TRY(in_place(tasks_of(after), "after"));
    StreamDiff diff{{}, a.size(), b.size()};
    for (std::size_t t = 0; t < std::min(a.size(), b.size()); ++t) {
        for (RegisterIndex i = 0; i < register_count; ++i)
            compare_register(t, i, a[t].registers.value(i), b[t].registers.value(i), diff.changes);
        compare_tables(t, a[t], b[t], diff.changes);
        compare_register(t, static_cast<RegisterIndex>(spec::op::OP_EN), a[t].blocks, b[t].blocks,
                         diff.changes);
    }
    return diff;
}

}  // namespace reef::rk3588
