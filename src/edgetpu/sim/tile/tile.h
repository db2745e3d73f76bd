// One tile: its memories, counters and the ends of the buses that reach it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "edgetpu/sim/program/counters.h"
#include "edgetpu/sim/program/memory.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/watch/monitor.h"
#include "edgetpu/sim/watch/tensor_tap.h"
#include "ring.h"

namespace reef::edgetpu::sim {

struct TensorScratch;

struct Tile {
    unsigned number = 0;  ///< 4 * row + column
    TileMemory memory;
    TileCounters counters;
    std::array<RingQueue, 2> rings;   ///< by Ring: what arrived
    std::array<MeshLink, 4> arrived;  ///< by the direction in which the data travel
    std::optional<Table> table;       ///< of the non-linear function, once loaded
};

/// How far an engine came with its instruction.
enum class Outcome : std::uint8_t {
    done,     ///< the instruction is finished
    moved,    ///< something was done, more remains
    waiting,  ///< nothing could be done
};

/// Why an engine waits, for the report of a deadlock.
struct Blocked {
    enum class On : std::uint8_t {
        nothing,
        counter,
        ring_full,
        ring_empty,
        mesh_full,
        mesh_empty,
        host_empty,
        host_full,
        row_full,
    };
    On on = On::nothing;
    Unmet unmet{};
    std::uint32_t row = 0;  ///< that is full
};

/// What a program did that no known program does; it stops the run.
struct Fault {
    std::string what;
    std::string hint;
};

/// What connects the tiles and the scalar core.
class Fabric {
  public:
    /// Wide rows whose numbers are `step` apart.
    struct Rows {
        std::uint32_t first = 0, step = 0, count = 0;
        bool kept = false;  ///< nothing writes them while the program runs
    };
    [[nodiscard]] virtual bool ring_has_room(Ring ring, std::uint16_t tiles, bool scalar) const = 0;
    virtual void ring_send(Ring ring, std::uint16_t tiles, bool scalar,
                           std::span<const std::uint8_t> data) = 0;
    /// Messages of `size` bytes each to tiles, while there are so many bytes, and room; how many.
    virtual std::size_t ring_send_each(Ring ring, std::uint16_t tiles, std::size_t size,
                                       std::span<const std::uint8_t> data) = 0;
    /// The valid bytes of wide rows, a message each, to tiles, while there is room for them; how
    /// many. Where the rows keep what they hold as long as the program runs, they may be read when
    /// the messages are received. Precondition: they are rows of the memory.
    virtual std::uint32_t ring_send_rows(Ring ring, std::uint16_t tiles, const TileMemory& memory,
                                         const Rows& rows) = 0;
    virtual void count_producer(Ring ring, unsigned events) = 0;
    /// Null at the edge of the grid.
    [[nodiscard]] virtual MeshLink* link_from(unsigned tile, Direction to) = 0;
    /// Precondition: not over the edge of the grid.
    [[nodiscard]] static unsigned neighbour(unsigned tile, Direction to) {
        switch (to) {
            case Direction::south:
                return tile + grid_side;
            case Direction::north:
                return tile - grid_side;
            case Direction::east:
                return tile + 1;
            case Direction::west:
                break;
        }
        return tile - 1;
    }

  protected:
    ~Fabric() = default;
};

/// What a tile's engines work with, one after the other.
struct Work {
    Tile& tile;
    Fabric& fabric;
    bool full_bits = true;
    TensorTap* tap = nullptr;
    bool word_tags = false;            ///< TensorTap::tags_words()
    TensorScratch* scratch = nullptr;  ///< of the thread; null: no tensor engine needs it
    std::uint32_t round = MeshLink::no_round + 1;  ///< see MeshLink
    /// Tiles, as bits, whose ends of mesh links have changed.
    std::uint32_t reached = 0;
    std::unique_ptr<Fault> fault{};  ///< null: none
    // Of one engine's advance().
    Witness witness{};
    std::uint64_t budget = 0;    ///< bounds its visits
    Blocked* blocked = nullptr;  ///< the engine's: nothing at first

    /// As unmet(); waits that are met order what follows behind the events they waited for.
    template <std::size_t most>
    [[nodiscard]] std::optional<Unmet> unready(const Waits<most>& waits, bool destination,
                                               const NestCursor& at) const {
        if (!at.at_pass_start(waits.least_level)) return std::nullopt;
        auto missing = unmet(waits.view(), destination, at, tile.counters);
        if (missing || !witness) return missing;
        for (const auto& wait : waits.view())
            if (wait.destination == destination && at.at_pass_start(wait.level))
                witness.monitor->waited(witness.actor, tile.number, wait, needed(wait, at));
        return missing;
    }
    /// Visits from the cursor's on that follow each other without a wait, an event or the end of a
    /// pass before the last, and whose addresses are below `size`, or 1. Strict runs look at every
    /// visit.
    template <std::size_t most>
    [[nodiscard]] std::uint32_t run(const Waits<most>& waits, bool destination,
                                    const NestCursor& at, std::size_t size) const {
        if (witness) return 1;
        if (waits.least_level == 0)
            for (const auto& wait : waits.view())
                if (wait.destination == destination && wait.level == 0) return 1;
        const auto visits = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(at.left_in_step(), std::max<std::uint64_t>(budget, 1)));
        const std::int64_t first = at.address();
        const std::int64_t last = first + (std::int64_t{visits} - 1) * at.nest().step[0];
        const auto end = static_cast<std::int64_t>(size);
        return first >= 0 && last >= 0 && first < end && last < end ? visits : 1;
    }
    void spend(std::uint64_t visits) { budget -= std::min(budget, visits); }
    void count(unsigned counter, unsigned events = 1) {
        if (events == 0) return;
        tile.counters.count(counter, events);
        if (witness) witness.monitor->counted(witness.actor, tile.number, counter);
    }
    /// Whether a row of a rotating buffer must wait to be emptied before it is filled.
    [[nodiscard]] bool full(const Nest& nest, std::uint32_t row) const {
        if (!full_bits || !nest.rotates() || row >= wide_rows) return false;
        if (tile.memory.full[row] != RowOwner::none) return true;
        if (witness) witness.monitor->row_filled(witness.actor, tile.number, row);
        return false;
    }
    void empty(const Nest& nest, std::uint32_t row) {
        if (nest.rotates()) empty(row);
    }
    void empty(std::size_t row) {
        if (witness && tile.memory.full[row] != RowOwner::none)
            witness.monitor->row_emptied(witness.actor, tile.number,
                                         static_cast<std::uint32_t>(row));
        tile.memory.full.empty(row);
    }
    void fill(const Nest& nest, std::uint32_t row, RowOwner owner) {
        if (nest.rotates()) tile.memory.full.fill(row, owner);
    }
    /// What holds back the engine's next visit, whether this turn brought it forward or not.
    Outcome wait(Blocked::On on, bool moved) {
        *blocked = {on, {}};
        return moved ? Outcome::moved : Outcome::waiting;
    }
    Outcome wait_for_row(std::uint32_t row, bool moved) {
        *blocked = {.on = Blocked::On::row_full, .row = row};
        return moved ? Outcome::moved : Outcome::waiting;
    }
    Outcome wait(const Unmet& unmet, bool moved) {
        *blocked = {Blocked::On::counter, unmet};
        return moved ? Outcome::moved : Outcome::waiting;
    }
    Outcome stop(std::string what, std::string hint = {}) {
        fault = std::make_unique<Fault>(std::move(what), std::move(hint));
        return Outcome::waiting;
    }
};

}  // namespace reef::edgetpu::sim
