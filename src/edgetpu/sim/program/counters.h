// Synchronisation counters, and the waits on them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "program.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {

/// Counters have 16 bits and wrap around; a wait is met when the counter is at most half the range
/// ahead of what it needs. (exact: movenet's relay waits for 37249, written as -28287, and its
/// words run over 65536; infeed credits start at 32764, the most that is still "ahead")
template <std::size_t size>
class Counters {
  public:
    [[nodiscard]] std::uint16_t operator[](unsigned counter) const { return values_[counter]; }
    [[nodiscard]] bool reached(unsigned counter, std::uint16_t needed) const {
        return static_cast<std::int16_t>(values_[counter] - needed) >= 0;
    }
    void count(unsigned counter, std::uint64_t events = 1) {
        values_[counter] = static_cast<std::uint16_t>(values_[counter] + events);
    }
    void reset(std::uint32_t mask, std::int32_t value) {
        for (unsigned i = 0; i < size; ++i)
            if ((mask >> i & 1U) != 0) values_[i] = static_cast<std::uint16_t>(value);
    }

  private:
    std::array<std::uint16_t, size> values_{};
};

using TileCounters = Counters<std::size(spec::tile_counter_values)>;
using ScalarCounters = Counters<std::size(spec::scalar_counter_values)>;

/// A wait that is not satisfied: why an engine stands still.
struct Unmet {
    std::uint8_t counter = 0;
    std::uint16_t needed = 0;
};

/// What the wait needs its counter to be for the cursor's current pass.
[[nodiscard]] inline std::uint16_t needed(const Wait& wait, const NestCursor& at) {
    return static_cast<std::uint16_t>(wait.start +
                                      wait.step * static_cast<std::int64_t>(at.passes(wait.level)));
}

/// The first wait of that side which holds back the cursor's current visit.
template <typename CounterFile>
[[nodiscard]] std::optional<Unmet> unmet(std::span<const Wait> waits, bool destination,
                                         const NestCursor& at, const CounterFile& counters) {
    for (const auto& wait : waits) {
        if (wait.destination != destination || !at.at_pass_start(wait.level)) continue;
        const auto count = needed(wait, at);
        if (!counters.reached(wait.counter, count)) return Unmet{wait.counter, count};
    }
    return std::nullopt;
}

/// Visits from the cursor's on, at most `most`, that no wait of that side for each visit holds back
/// while no other engine counts. Precondition: none holds back the current one.
template <typename CounterFile>
[[nodiscard]] std::uint64_t visits_unheld(std::span<const Wait> waits, bool destination,
                                          const NestCursor& at, const CounterFile& counters,
                                          std::uint64_t most) {
    constexpr std::int32_t most_ahead = std::numeric_limits<std::int16_t>::max();
    for (const auto& wait : waits) {
        if (wait.destination != destination || wait.level != 0) continue;
        if (wait.step < 0 || wait.step > most_ahead) return 1;
        const auto ahead = static_cast<std::uint16_t>(counters[wait.counter] - needed(wait, at));
        if (wait.step > 0) most = std::min<std::uint64_t>(most, ahead / wait.step + 1);
        // The engine may count the counter itself, which must not wrap around to values behind.
        most = std::min<std::uint64_t>(most, std::max(most_ahead - ahead, 1));
    }
    return most;
}

}  // namespace reef::edgetpu::sim
