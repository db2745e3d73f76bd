// Strict runs: watches the accesses and the order of a machine's engines, and collects what a right
// program would not do. The engines tell it; it changes nothing.
//
// Memory is watched by words of 4 bytes (narrow, scalar memory), words of 8 bytes (scaling), rows
// (wide) and units (FIFOs). What an instruction reads without using it counts as read, but for
// inputs whose weight is zero in every lane.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "edgetpu/sim/program/counters.h"
#include "edgetpu/sim/program/memory.h"
#include "edgetpu/sim/program/program.h"
#include "happens_before.h"
#include "reef/edgetpu/simulator.h"
#include "watcher.h"

namespace reef::edgetpu::sim {

struct MonitorOptions {
    /// Rows of rotating buffers that were full order their emptying before their filling.
    bool full_bits = true;
};

class Monitor final : public AccessWatcher {
  public:
    explicit Monitor(MonitorOptions options);

    // Programs. Everything in one program comes before everything in the next.
    /// `narrow_bound` in bytes; 0: not declared.
    void begin_program(std::uint64_t narrow_bound);
    void begin_stream();
    /// After a program that ran to its end.
    void end_program();
    /// Rows that the program `run` loaded and nothing has read since.
    void report_unread_rows(std::uint32_t run);
    [[nodiscard]] std::uint32_t run() const { return run_; }
    /// Findings since the last call of clear().
    [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
    void clear();

    // Order.
    [[nodiscard]] Release release(Actor actor) { return order_.release(actor); }
    void join(Actor actor, const Release& release) { order_.join(actor, release); }
    void started(Actor actor, const ProgramInstruction& instruction);
    void finished(Actor actor);
    void counted(Actor actor, unsigned tile, unsigned counter);
    void ring_counted(Actor actor, Ring ring);
    void scalar_counted(Actor actor, unsigned counter);
    void counters_set(unsigned tile, std::uint32_t mask, std::uint16_t value);
    void scalar_counters_set(std::uint32_t mask, std::uint16_t value);
    void waited(Actor actor, unsigned tile, const Wait& wait, std::uint16_t needed);
    void scalar_waited(Actor actor, const Wait* wait, unsigned counter, std::uint16_t needed);
    void notified(unsigned tile);
    void awaited(unsigned tile, unsigned notifications);
    void sent(Actor actor, Ring ring, std::uint16_t tiles, bool scalar);
    void received(Actor actor, unsigned tile, Ring ring);
    void scalar_received(Actor actor);
    void mesh_sent(Actor actor, unsigned tile, Direction to);
    void mesh_received(Actor actor, unsigned tile, Direction to);
    void row_emptied(Actor actor, unsigned tile, std::uint32_t row);
    void row_filled(Actor actor, unsigned tile, std::uint32_t row);

    // Accesses. `at` counts the memory's words, rows or units.
    void read(Actor actor, Watched memory, unsigned tile, std::uint32_t at) override;
    void write(Actor actor, Watched memory, unsigned tile, std::uint32_t at,
               bool parameter) override;
    /// Whether a read would be a finding of its own.
    [[nodiscard]] bool suspicious(Actor actor, Watched memory, unsigned tile,
                                  std::uint32_t at) const;

    /// Takes the last event out of what that wait is known to order: for tests, which learn so
    /// whether the program relies on it.
    void weaken(const Wait* wait) { weakened_ = wait; }

  private:
    struct Cell {
        std::uint32_t written = 0;  ///< the writer's time; 0: never
        Actor writer = 0;
        bool unread = false;       ///< holds a parameter row or FIFO unit that nothing has read yet
        bool resident = false;     ///< holds a parameter row
        std::uint32_t run = 0;     ///< program that wrote it
        std::uint32_t reader = 0;  ///< instruction, of a resident row, plus 1
        std::uint32_t reader_run = 0;                          ///< its program
        std::array<std::uint32_t, tile_engine_count> reads{};  ///< times, by engine
    };
    using Memory = std::vector<Cell>;
    struct Sent {
        Actor actor = 0;
        std::uint32_t time = 0;
    };
    struct Start {
        std::uint32_t time;
        const ProgramInstruction* instruction;
    };

    /// Empty before the first access: four megabytes a tile, which small programs leave alone.
    [[nodiscard]] const Memory& memory(Watched watched, unsigned tile) const;
    [[nodiscard]] Memory& cells(Watched watched, unsigned tile);
    void wait(Actor actor, const Events& events, const Wait* wait, std::uint16_t needed);
    void check_bound(Actor actor, Watched memory, unsigned tile, std::uint32_t at);
    void check_sent(Sent& last, Actor actor, unsigned tile, unsigned ring);
    void check_use(Cell& cell, Actor actor, Watched memory, unsigned tile, std::uint32_t at);
    [[nodiscard]] const ProgramInstruction* instruction_at(Actor actor, std::uint32_t time) const;
    void report(FindingKind kind, Watched memory, unsigned tile, std::uint32_t at,
                const ProgramInstruction* instruction, const ProgramInstruction* other);
    void report_left(std::string what, unsigned tile, std::size_t count);

    MonitorOptions options_;
    HappensBefore order_;
    std::array<std::array<Memory, 3>, tile_count> tiles_;
    std::array<Memory, 3> scalar_;
    std::array<std::array<Events, std::size(spec::tile_counter_values)>, tile_count> events_;
    std::array<Events, std::size(spec::scalar_counter_values)> scalar_events_;
    std::array<Release, 2> ring_events_;  ///< by Ring: all so far
    std::array<std::array<std::deque<Release>, 2>, tile_count> rings_;
    std::deque<Release> scalar_ring_;
    /// The last message to each tile by ring; the scalar core takes those of both.
    std::array<std::array<Sent, 2>, tile_count> last_sent_;
    Sent last_sent_to_core_;
    std::array<std::array<std::deque<Release>, 4>, tile_count> links_;  ///< by receiver
    std::array<std::deque<Release>, tile_count> notifications_;
    std::array<std::vector<Release>, tile_count> emptied_;  ///< by row; nothing before the first
    std::array<std::vector<Start>, actor_count> starts_;
    std::uint64_t narrow_bound_ = 0;
    std::uint32_t run_ = 0;
    const Wait* weakened_ = nullptr;

    using Key = std::tuple<FindingKind, Watched, const void*, const void*>;
    std::map<Key, std::size_t> known_;
    std::vector<Finding> findings_;
};

/// An engine's way to who watches; does nothing when nobody does. True in strict runs.
struct Witness {
    Monitor* monitor = nullptr;
    AccessWatcher* watcher = nullptr;  ///< the monitor, or who steps through the program
    Actor actor = 0;
    unsigned tile = 0;

    explicit operator bool() const { return monitor != nullptr; }
    void reads(Watched memory, std::uint32_t at) const {
        if (watcher != nullptr) watcher->read(actor, memory, tile, at);
    }
    void writes(Watched memory, std::uint32_t at, bool parameter = false) const {
        if (watcher != nullptr) watcher->write(actor, memory, tile, at, parameter);
    }
};

}  // namespace reef::edgetpu::sim
