// Ring producer: sends the valid bytes of wide rows, one message a row.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {

// From that row on, those that follow each other without a wait, while there is room for them; how
// many. Precondition: there is room for the first.
std::uint32_t RingSendEngine::send_rows(Work& work, std::uint32_t row) {
    const auto& memory = work.tile.memory;
    const std::uint32_t in_a_row = std::min(work.run(op_->waits, false, src_, wide_rows),
                                            work.run(op_->waits, true, src_, wide_rows));
    const auto step = static_cast<std::uint32_t>(op_->src.step[0]);
    std::uint32_t rows = 1;
    if (in_a_row > 1 && !op_->to_scalar) {
        rows = work.fabric.ring_send_rows(
            op_->ring, op_->to_tiles, memory,
            {.first = row, .step = step, .count = in_a_row, .kept = op_->from_kept_rows});
    } else {
        work.witness.reads(Watched::wide, row);
        if (work.witness)
            work.witness.monitor->sent(work.witness.actor, op_->ring, op_->to_tiles,
                                       op_->to_scalar);
        work.fabric.ring_send(op_->ring, op_->to_tiles, op_->to_scalar,
                              std::span(memory.wide[row]).first(memory.row_length[row]));
    }
    for (std::uint32_t i = 0; i < rows; ++i) work.empty(op_->src, row + i * step);
    return rows;
}

Outcome RingSendEngine::advance(Work& work) {
    bool moved = false;
    while (!src_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        const auto& waits = op_->waits;
        auto unready = work.unready(waits, false, src_);
        if (!unready) unready = work.unready(waits, true, src_);
        if (unready) return work.wait(*unready, moved);
        if (!work.fabric.ring_has_room(op_->ring, op_->to_tiles, op_->to_scalar))
            return work.wait(Blocked::On::ring_full, moved);
        const auto row = static_cast<std::uint32_t>(src_.address());
        if (row >= wide_rows) return work.stop(fmt::format("reads wide row {:#x}", row));
        const std::uint32_t rows = send_rows(work, row);
        const unsigned completed = src_.advance(rows);
        const unsigned dimensions = op_->src.dimensions;
        work.count(spec::value::tile_counter::RING_WRITE_,
                   op_->ring_write.events(rows, completed, dimensions));
        if (const unsigned events = op_->producer.events(rows, completed, dimensions); events > 0) {
            work.fabric.count_producer(op_->ring, events);
            if (work.witness) work.witness.monitor->ring_counted(work.witness.actor, op_->ring);
        }
        moved = true;
        work.spend(rows);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
