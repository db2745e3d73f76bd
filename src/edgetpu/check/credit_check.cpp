#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "edgetpu/isa/names.h"
#include "reef_spec/edgetpu_isa.h"
#include "synchronisation.h"
#include "tile_events.h"

namespace reef::edgetpu::check {
namespace {

/// Tiles count the events of their own engines; those of the rings' producers count everywhere.
bool is_global(unsigned counter) {
    return counter == tile_producer_a || counter == tile_producer_b;
}

std::string_view counter_name(unsigned counter) {
    return spec::tile_counter_values[counter].name;
}

/// A wait that may still be in force.
struct Pending {
    const Issued* issued;
    Demand demand;
    unsigned engine;
};

struct Tile {
    std::array<std::int64_t, tile_counters> counters{};
    std::vector<Pending> pending;
    /// Engines that may still count each counter: those whose instructions no fence waited for.
    std::array<std::uint32_t, tile_counters> counting{};
    std::int64_t notified = 0;
    std::int64_t awaited = 0;
};

class CreditChecker {
  public:
    std::vector<ProgramFault> run(const IssueOrder& order) {
        for (const auto& issued : order.instructions) step(issued);
        finish(order);
        report();
        return std::move(faults_);
    }

  private:
    /// What is the same for several tiles is reported once.
    struct Key {
        std::size_t chunk;
        std::size_t word;
        std::string what;
        auto operator<=>(const Key&) const = default;
    };

    template <typename... Args>
    void fault(const Issued& issued, unsigned tile, fmt::format_string<Args...> format,
               Args&&... args) {
        Key key{issued.chunk, issued.instruction.word,
                fmt::format(format, std::forward<Args>(args)...)};
        found_[std::move(key)] |= static_cast<std::uint16_t>(1U << tile);
    }

    void report() {
        for (const auto& [key, tiles] : found_)
            faults_.push_back(
                {key.chunk, key.word, fmt::format("{}: {}", tiles_text(tiles), key.what)});
    }

    void step(const Issued& issued) {
        const auto& operation = *issued.operation;
        if (const auto* s = std::get_if<program::Sync>(&operation)) return sync(issued, *s);
        if (std::holds_alternative<program::RingPush>(operation)) return relay(operation);
        if (issued.instruction.info->space == Space::scalar) return;
        if (const auto* f = std::get_if<program::Fence>(&operation)) {
            for (unsigned t = 0; t < tiles_per_chip; ++t)
                if (issued.tiles >> t & 1) fence(issued, *f, t);
            return;
        }
        const auto engine = engine_of(operation);
        for (const auto& demand : demands_of(operation)) {
            if (demand.counter >= tile_counters) {
                fault(issued, 0, "{} waits for counter {}, of which nothing is known",
                      issued.instruction.info->name, demand.counter);
                continue;
            }
            for (unsigned t = 0; t < tiles_per_chip; ++t)
                if (issued.tiles >> t & 1) tiles_[t].pending.push_back({&issued, demand, engine});
        }
        for (const auto& production : productions_of(operation))
            count(production, issued.tiles, engine);
    }

    void count(const Production& production, std::uint16_t tiles, unsigned engine) {
        constexpr std::uint64_t most_events = std::uint64_t{1} << 40;
        const auto events = static_cast<std::int64_t>(std::min(production.events, most_events));
        const auto senders = std::popcount(tiles);
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if (is_global(production.counter)) {
                tiles_[t].counters[production.counter] += events * senders;
            } else if (tiles >> t & 1) {
                tiles_[t].counters[production.counter] += events;
                tiles_[t].counting[production.counter] |= 1U << engine;
            }
        }
    }

    // A relay of the scalar core sends on ring A too.
    void relay(const program::Operation& push) {
        for (const auto& production : productions_of(push))
            if (production.counter == scalar_producer_a)
                for (auto& tile : tiles_)
                    tile.counters[tile_producer_a] += static_cast<std::int64_t>(production.events);
    }

    /// The tile issues nothing behind the fence before the named engines are idle: what they wait
    /// for must come from before it.
    void fence(const Issued& issued, const program::Fence& fence, unsigned t) {
        auto& tile = tiles_[t];
        const auto engines = fence.engines;
        const auto set = fence.reset_counters;
        std::erase_if(tile.pending, [&](const Pending& p) {
            if ((engines >> p.engine & 1) == 0) return false;
            // Another tile may send later, unless the count begins anew here.
            if (is_global(p.demand.counter) && (set >> p.demand.counter & 1) == 0 &&
                tile.counters[p.demand.counter] < p.demand.largest)
                return false;
            settle(p, t, fmt::format("before the fence at word {:#06x}", issued.instruction.word));
            return true;
        });
        for (auto& counting : tile.counting) counting &= ~engines;
        for (const unsigned c : {tile_producer_a, tile_producer_b})
            if (fence.expected_counters >> (c - tile_producer_a) & 1) expect(issued, fence, t, c);
        for (unsigned c = 0; c < tile_counters; ++c) {
            if ((set >> c & 1) == 0) continue;
            check_set(issued, t, c, fence.reset_value);
            tile.counters[c] = fence.reset_value;
        }
        tile.notified += fence.notifies() ? 1 : 0;
    }

    /// Nothing behind the fence is issued before so many messages were sent.
    void expect(const Issued& issued, const program::Fence& fence, unsigned t, unsigned counter) {
        const auto reached = tiles_[t].counters[counter];
        // Counters have 16 bits.
        if (static_cast<std::int16_t>(reached - fence.expected) >= 0) return;
        fault(issued, t, "fence expects {} {}, {} come before it", counter_name(counter),
              fence.expected, reached);
    }

    void settle(const Pending& p, unsigned t, const std::string& before) {
        const auto reached = tiles_[t].counters[p.demand.counter];
        if (reached >= p.demand.largest) return;
        fault(*p.issued, t, "wait{} of {} needs {} {}, {} come {}", p.demand.wait,
              p.issued->instruction.info->name, counter_name(p.demand.counter), p.demand.largest,
              reached, before);
    }

    /// An engine that counts or waits must be idle when its counter is set. Harmless, and seen in
    /// vendors' programs: the counter keeps its value and the waiting engine has not begun.
    void check_set(const Issued& issued, unsigned t, unsigned counter, std::int64_t value) {
        const auto& tile = tiles_[t];
        if (!is_global(counter) && tile.counting[counter] != 0)
            fault(issued, t, "{} is set to {} while it may be counted by {}", counter_name(counter),
                  value, names_in(spec::tile_engine_enumeration, tile.counting[counter]));
        for (const auto& p : tile.pending) {
            if (p.demand.counter != counter) continue;
            const auto now = tile.counters[counter];
            if (now == value && p.demand.first > now) continue;
            fault(issued, t, "{} is set from {} to {} while {} at word {:#06x} may wait for {}",
                  counter_name(counter), now, value, p.issued->instruction.info->name,
                  p.issued->instruction.word, p.demand.first);
        }
    }

    void sync(const Issued& issued, const program::Sync& sync) {
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((sync.notified_tiles >> t & 1) == 0) continue;
            auto& tile = tiles_[t];
            tile.awaited += sync.notified_count;
            if (tile.notified < tile.awaited)
                fault(issued, t, "sync waits for notification {}, {} come before it", tile.awaited,
                      tile.notified);
        }
    }

    void finish(const IssueOrder& order) {
        if (order.instructions.empty()) return;
        const auto& last = order.instructions.back();
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            auto& tile = tiles_[t];
            for (const auto& p : tile.pending) settle(p, t, "before the end");
            if (tile.notified > tile.awaited)
                fault(last, t, "{} notifications at the end, sync waits for {}", tile.notified,
                      tile.awaited);
        }
    }

    std::array<Tile, tiles_per_chip> tiles_;
    std::map<Key, std::uint16_t> found_;
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_credits(const IssueOrder& order) {
    return CreditChecker().run(order);
}

}  // namespace reef::edgetpu::check
