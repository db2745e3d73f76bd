// The report of a program whose waits cannot be satisfied.
#include <fmt/format.h>

#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

std::string why(const Blocked& blocked, const auto& counters) {
    const std::string text = describe(blocked, counters);
    return text.empty() ? "not started" : text;
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
                why(engine.blocked, scalar_.counters));
    for (const auto& unit : units_) {
        for (const auto& engine : unit->engines)
            if (!engine.idle())
                what +=
                    fmt::format("\n  tile {}: {} {}", unit->tile.number,
                                place_of(engine.current ? *engine.current
                                                        : *engine.queue[engine.next].instruction),
                                why(engine.blocked, unit->tile.counters));
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
