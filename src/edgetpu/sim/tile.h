// One tile: its memories, counters and the ends of the buses that reach it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "counters.h"
#include "memory.h"
#include "program.h"
#include "ring.h"

namespace reef::edgetpu::sim {

struct Tile {
    unsigned number = 0;  ///< 4 * row + column
    TileMemory memory;
    TileCounters counters;
    std::array<RingQueue, 2> rings;   ///< by Ring: what arrived
    std::array<MeshLink, 4> arrived;  ///< by the direction in which the data travel
    const Table* table = nullptr;     ///< of the non-linear function, once loaded
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
        row_full,
    };
    On on = On::nothing;
    Unmet unmet;
};

/// What a program did that no known program does; it stops the run.
struct Fault {
    std::string what;
    std::string hint;
};

/// What connects the tiles and the scalar core.
class Fabric {
  public:
    [[nodiscard]] virtual bool ring_has_room(Ring ring, std::uint16_t tiles, bool scalar) const = 0;
    virtual void ring_send(Ring ring, std::uint16_t tiles, bool scalar,
                           std::span<const std::uint8_t> data) = 0;
    virtual void count_producer(Ring ring) = 0;
    /// Null at the edge of the grid.
    [[nodiscard]] virtual MeshLink* link_from(unsigned tile, Direction4 to) = 0;

  protected:
    ~Fabric() = default;
};

/// What an engine works with. `budget` bounds the visits of one advance().
struct Work {
    Tile& tile;
    Fabric& fabric;
    std::uint64_t budget;
    bool full_bits = true;
    Blocked blocked;
    std::optional<Fault> fault;

    [[nodiscard]] bool full(const Nest& nest, std::uint32_t row) const {
        return full_bits && nest.rotates && row < wide_rows &&
               tile.memory.full[row] != RowOwner::none;
    }
    void empty(const Nest& nest, std::uint32_t row) {
        if (nest.rotates) tile.memory.full[row] = RowOwner::none;
    }
    void fill(const Nest& nest, std::uint32_t row, RowOwner owner) {
        if (nest.rotates) tile.memory.full[row] = owner;
    }
    Outcome wait(Blocked::On on) {
        blocked = {on, {}};
        return Outcome::waiting;
    }
    Outcome wait(const Unmet& unmet) {
        blocked = {Blocked::On::counter, unmet};
        return Outcome::waiting;
    }
    Outcome stop(std::string what, std::string hint = {}) {
        fault = Fault{std::move(what), std::move(hint)};
        return Outcome::waiting;
    }
};

}  // namespace reef::edgetpu::sim
