// What a machine shows of itself between two rounds.
#include "edgetpu/isa/names.h"
#include "machine.h"

namespace reef::edgetpu::sim {
namespace {

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

EngineStatus Machine::engine(unsigned tile, unsigned number) const {
    return status_of(units_[tile]->engines[number]);
}

EngineStatus Machine::scalar_engine(unsigned number) const {
    return status_of(scalar_engines_[number]);
}

DispatchStatus Machine::dispatcher(unsigned tile) const {
    const TileUnit& unit = *units_[tile];
    DispatchStatus status{.queued = waiting_to_dispatch(unit),
                          .waits = describe(unit.held_until, unit.tile.counters),
                          .notifications = notifications_[tile]};
    if (const auto engines = unit.held_for & unit.busy; engines != 0)
        status.waits = "waits for " + names_in(spec::tile_engine_enumeration, engines);
    const auto next =
        std::find_if(issued_.begin() + static_cast<std::ptrdiff_t>(unit.next), issued_.end(),
                     [&](const Issued& issued) { return (issued.tiles >> tile & 1U) != 0; });
    if (next != issued_.end()) status.next = next->instruction;
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
