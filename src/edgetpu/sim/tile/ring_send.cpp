// Ring producer: sends the valid bytes of wide rows, one message a row.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {

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
        const auto& memory = work.tile.memory;
        work.witness.reads(Watched::wide, row);
        if (work.witness)
            work.witness.monitor->sent(work.witness.actor, op_->ring, op_->to_tiles,
                                       op_->to_scalar);
        work.fabric.ring_send(op_->ring, op_->to_tiles, op_->to_scalar,
                              std::span(memory.wide[row]).first(memory.row_length[row]));
        work.empty(op_->src, row);
        const unsigned completed = src_.advance();
        const unsigned dimensions = op_->src.dimensions;
        if (op_->ring_write.fires(completed, dimensions))
            work.count(spec::value::tile_counter::RING_WRITE_);
        if (op_->producer.fires(completed, dimensions)) {
            work.fabric.count_producer(op_->ring);
            if (work.witness) work.witness.monitor->ring_counted(work.witness.actor, op_->ring);
        }
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
