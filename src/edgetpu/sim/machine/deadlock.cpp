// The report of a program whose waits cannot be satisfied.
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/isa/names.h"
#include "machine.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

std::string or_not_started(std::string waits) {
    return waits.empty() ? "not started" : std::move(waits);
}

const ProgramInstruction& front_of(const EngineStatus& status) {
    return status.current != nullptr ? *status.current : *status.next;
}

/// What waits, in the order of its first tile; tiles that wait for the same stand in one line.
class Waiting {
  public:
    void add(std::string what) { lines_.push_back({0, std::move(what)}); }
    void add(unsigned tile, std::string what) {
        const auto bit = static_cast<std::uint16_t>(1U << tile);
        const auto same = std::ranges::find_if(
            lines_, [&](const Line& line) { return line.tiles != 0 && line.what == what; });
        if (same != lines_.end())
            same->tiles |= bit;
        else
            lines_.push_back({bit, std::move(what)});
    }
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const auto& [tiles, what] : lines_)
            all += fmt::format("\n  {}: {}", tiles == 0 ? "scalar core" : tiles_text(tiles), what);
        return all;
    }

  private:
    struct Line {
        std::uint16_t tiles = 0;  ///< none: the scalar core
        std::string what;
    };
    std::vector<Line> lines_;
};

}  // namespace

Error Machine::deadlock() const {
    Waiting waiting;
    if (const CoreStatus core = core_status(); !core.waits.empty())
        waiting.add(fmt::format("{} {}", place_of(*core.at), core.waits));
    else if (word_to_host_)
        waiting.add("waits for the host to take a word");
    for (unsigned e = 0; e < scalar_engine_count; ++e)
        if (const EngineStatus status = scalar_engine(e); status.current || status.next)
            waiting.add(fmt::format("{} {}", place_of(front_of(status)),
                                    or_not_started(describe(status.blocked, scalar_.counters))));
    for (const auto& unit : units_) {
        const unsigned tile = unit->tile.number;
        for (unsigned e = 0; e < tile_engine_count; ++e)
            if (const EngineStatus status = engine(tile, e); status.current || status.next)
                waiting.add(
                    tile,
                    fmt::format("{} {}", place_of(front_of(status)),
                                or_not_started(describe(status.blocked, unit->tile.counters))));
        if (const DispatchStatus status = dispatcher(tile); !status.waits.empty())
            waiting.add(tile, fmt::format("{} {}", place_of(*status.next), status.waits));
    }
    return Error{
        Cause::bad_input,
        "deadlock:" + waiting.text() + "\n ",
        {},
        "no engine can go on; reef disasm --check FILE names waits that nothing satisfies"};
}

}  // namespace reef::edgetpu::sim
