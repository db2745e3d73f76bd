#include "machine_status.h"

#include <fmt/format.h>

#include <bit>

#include "edgetpu/isa/names.h"
#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

std::string describe_any(const Blocked& blocked, const auto& counters, const auto& names) {
    switch (blocked.on) {
        case Blocked::On::counter:
            return fmt::format("waits for {} >= {}, which is {}",
                               std::string_view(names[blocked.unmet.counter].name),
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
    return {};
}

template <typename Engine>
EngineStatus status_of(const Engine& engine) {
    EngineStatus status;
    status.current = engine.current;
    status.queued = engine.queue.size() - engine.next;
    if (status.queued > 0) status.next = engine.queue[engine.next].instruction;
    status.blocked = engine.blocked;
    if (engine.current == nullptr) return status;
    std::visit(
        [&](const auto& activity) {
            if constexpr (requires { activity.each_nest([](auto, const NestCursor&) {}); })
                activity.each_nest([&](std::string_view name, const NestCursor& cursor) {
                    status.walks.push_back({name, cursor});
                });
        },
        engine.activity);
    return status;
}

}  // namespace

std::string describe(const Blocked& blocked, const TileCounters& counters) {
    return describe_any(blocked, counters, spec::tile_counter_values);
}

std::string describe(const Blocked& blocked, const ScalarCounters& counters) {
    return describe_any(blocked, counters, spec::scalar_counter_values);
}

EngineStatus Machine::engine(unsigned tile, unsigned number) const {
    return status_of(units_[tile]->engines[number]);
}

EngineStatus Machine::scalar_engine(unsigned number) const {
    return status_of(scalar_engines_[number]);
}

DispatchStatus Machine::dispatcher(unsigned tile) const {
    const TileUnit& unit = *units_[tile];
    DispatchStatus status{.queued = unit.dispatch.size() - unit.next,
                          .waits = describe(unit.held_until, unit.tile.counters),
                          .notifications = unit.notifications};
    if (const auto engines = unit.held_for & unit.busy; engines != 0)
        status.waits = "waits for " + names_in(spec::tile_engine_enumeration, engines);
    if (status.queued > 0) status.next = unit.dispatch[unit.next].instruction;
    return status;
}

const ProgramInstruction* Machine::next_of_core() const {
    if (program_ == nullptr || stream_ == program_->streams.size() || halted_) return nullptr;
    const Stream& stream = program_->streams[stream_];
    const std::size_t word = core_.program_counter();
    if (word >= stream.at_word.size() || stream.at_word[word] == Stream::no_instruction)
        return nullptr;
    return &stream.instructions[stream.at_word[word]];
}

CoreStatus Machine::core_status() const {
    CoreStatus status{.at = next_of_core(), .waits = {}};
    if (status.at == nullptr) return status;
    if (word_to_host_) status.waits = "waits for the host to take a word";
    if (const auto* sync = std::get_if<Sync>(&status.at->operation);
        sync != nullptr && core_.gate_open(status.at->source))
        status.waits = waits_of(*sync);
    return status;
}

}  // namespace reef::edgetpu::sim
