#include "debugger_breaks.h"

#include <algorithm>

#include "edgetpu/sim/program/memory.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {

ChipUnit unit_of(Actor actor) {
    if (actor < scalar_actor(0))
        return {TileNumber{unsigned{actor} / tile_engine_count},
                spec::tile_engine_values[actor % tile_engine_count].name};
    if (actor > core_actor) return {TileNumber{unsigned{actor} - dispatch_actor(0)}, "dispatch"};
    if (actor == scalar_actor(infeed)) return {{}, "infeed"};
    if (actor == scalar_actor(push)) return {{}, "ring_push"};
    if (actor == scalar_actor(pop)) return {{}, "ring_pop"};
    return {{}, "core"};
}

bool of_core(const ProgramInstruction& instruction) {
    return std::holds_alternative<ScalarWork>(instruction.operation) ||
           std::holds_alternative<Sync>(instruction.operation);
}

bool TileProgress::begin(std::uint32_t instruction, unsigned tile) {
    std::uint16_t& begun = begun_[instruction];
    if ((begun >> tile & 1U) != 0) begun = 0;  // another pass
    const bool first = begun == 0;
    begun = static_cast<std::uint16_t>(begun | 1U << tile);
    return first;
}

bool TileProgress::end(std::uint32_t instruction, unsigned tile, std::uint16_t tiles) {
    std::uint16_t& ended = ended_[instruction];
    ended = static_cast<std::uint16_t>(ended | 1U << tile);
    if ((ended & tiles) != tiles) return false;
    ended = 0;
    return true;
}

void TileProgress::clear() {
    begun_.clear();
    ended_.clear();
}

unsigned BreakpointList::add(const BreakCondition& when) {
    all_.push_back({++last_, when, 0});
    return last_;
}

bool BreakpointList::remove(unsigned number) {
    return std::erase_if(all_, [&](const Breakpoint& one) { return one.number == number; }) != 0;
}

namespace {

std::optional<unsigned> first_hit(std::vector<Breakpoint>& all, auto&& hit) {
    std::optional<unsigned> number;
    for (Breakpoint& one : all) {
        if (!hit(one.when)) continue;
        ++one.hits;
        if (!number) number = one.number;
    }
    return number;
}

}  // namespace

std::optional<unsigned> BreakpointList::at_word(const ProgramWord& at, bool done,
                                                const ChipUnit& unit, bool first) {
    return first_hit(all_, [&](const BreakCondition& when) {
        const auto* word = std::get_if<WordBreak>(&when);
        if (word == nullptr || word->at != at || word->when_done != done) return false;
        return word->tile ? word->tile == unit.tile : first;
    });
}

std::optional<unsigned> BreakpointList::at_write(MemoryNumber memory, unsigned tile,
                                                 std::uint32_t at) {
    const MemoryInfo& info = info_of(memory);
    const std::uint32_t scale = memory == ChipMemory::narrow ? narrow_word_bytes : 1;
    const std::uint32_t first = at * scale;
    const std::uint32_t last = first + scale - 1;
    return first_hit(all_, [&](const BreakCondition& when) {
        const auto* write = std::get_if<WriteBreak>(&when);
        if (write == nullptr) return false;
        const MemoryRange& where = write->where;
        const bool right_tile = !info.of_tile || !where.tile || where.tile->value == tile;
        return where.memory == memory && right_tile && first <= where.last && last >= where.first;
    });
}

}  // namespace reef::edgetpu::sim
