// The report of a program whose waits cannot be satisfied.
#include <fmt/format.h>

#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

std::string why(const Blocked& blocked, auto counters, std::string_view (*name)(unsigned)) {
    switch (blocked.on) {
        case Blocked::On::counter:
            return fmt::format("waits for {} >= {}, which is {}", name(blocked.unmet.counter),
                               blocked.unmet.needed, counters[blocked.unmet.counter]);
        case Blocked::On::ring_full:
            return "waits for room at the ring's receivers";
        case Blocked::On::ring_empty:
            return "waits for a message of the ring";
        case Blocked::On::mesh_full:
            return "waits for its neighbour to take words";
        case Blocked::On::mesh_empty:
            return "waits for words of its neighbour";
        case Blocked::On::host_empty:
            return "waits for data of the host";
        case Blocked::On::host_full:
            return "waits for the host to take data";
        case Blocked::On::row_full:
            return "waits for its next row to be used";
        case Blocked::On::nothing:
            break;
    }
    return "not started";
}

std::string_view tile_counter_name(unsigned n) {
    return spec::tile_counter_values[n].name;
}

std::string_view scalar_counter_name(unsigned n) {
    return spec::scalar_counter_values[n].name;
}

}  // namespace

Error Machine::deadlock() const {
    std::string what = "deadlock:";
    if (word_to_host_) what += "\n  scalar core: waits for the host to take a word";
    if (waiting_sync_ != nullptr)
        what += fmt::format("\n  scalar core: {} waits", place_of(*waiting_sync_));
    for (const auto& engine : scalar_engines_)
        if (!engine.idle())
            what += fmt::format(
                "\n  scalar core: {} {}",
                place_of(engine.current ? *engine.current : *engine.queue[engine.next].instruction),
                why(engine.blocked, scalar_.counters, scalar_counter_name));
    for (const auto& unit : units_) {
        for (const auto& engine : unit->engines)
            if (!engine.idle())
                what +=
                    fmt::format("\n  tile {}: {} {}", unit->tile.number,
                                place_of(engine.current ? *engine.current
                                                        : *engine.queue[engine.next].instruction),
                                why(engine.blocked, unit->tile.counters, tile_counter_name));
        if (unit->next != unit->dispatch.size())
            what += fmt::format("\n  tile {}: {} waits for engines", unit->tile.number,
                                place_of(*unit->dispatch[unit->next].instruction));
    }
    return Error{
        Cause::bad_input,
        what,
        {},
        "no engine can go on; reef disasm --check FILE names waits that nothing satisfies"};
}

}  // namespace reef::edgetpu::sim
