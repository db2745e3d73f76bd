// Ring consumers: one message becomes one wide row.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {

void RingReceiveEngine::begin_group() {
    group_begun_ = true;
    if (op_->head.enabled && dst_.at_pass_start(std::max(op_->head.level, 1U)))
        heads_due_ = op_->head.rows;
}

bool RingReceiveEngine::take_row(Work& work, std::int32_t row) {
    auto& queue = work.tile.rings[static_cast<unsigned>(op_->ring)];
    if (static_cast<std::uint32_t>(row) >= wide_rows) {
        work.stop(fmt::format("writes wide row {:#x}", row));
        return false;
    }
    const Message& message = queue.front();
    auto& memory = work.tile.memory;
    std::memcpy(memory.wide[row].data(), message.bytes.data(), message.size);
    memory.row_length[row] = message.size;
    if (work.word_tags) memory.row_format[row] = RowFormat::plain_;
    queue.pop();
    if (work.witness)
        work.witness.monitor->received(work.witness.actor, work.tile.number, op_->ring);
    work.witness.writes(Watched::wide, static_cast<std::uint32_t>(row), true);
    return true;
}

Outcome RingReceiveEngine::advance(Work& work) {
    const auto counter = op_->ring == Ring::a ? spec::value::tile_counter::RING_READ_A_
                                              : spec::value::tile_counter::RING_READ_B_;
    bool moved = false;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        const auto waits = op_->waits.view();
        auto unready = work.unready(waits, true, dst_);
        if (!unready) unready = work.unready(waits, false, dst_);
        if (unready) return moved ? Outcome::moved : work.wait(*unready);
        if (!group_begun_) begin_group();
        if (work.tile.rings[static_cast<unsigned>(op_->ring)].empty())
            return moved ? Outcome::moved : work.wait(Blocked::On::ring_empty);
        const bool head = heads_due_ > 0;
        if (!head && work.full(op_->dst, static_cast<std::uint32_t>(dst_.address())))
            return moved ? Outcome::moved : work.wait(Blocked::On::row_full);
        moved = true;
        if (work.budget > 0) --work.budget;
        if (head) {
            if (!take_row(work, head_row_)) return Outcome::waiting;
            head_row_ = head_row_ == op_->head.last ? op_->head.base : head_row_ + 1;
            --heads_due_;
            continue;
        }
        if (!take_row(work, dst_.address())) return Outcome::waiting;
        work.fill(op_->dst, static_cast<std::uint32_t>(dst_.address()),
                  op_->ring == Ring::a ? RowOwner::ring_a : RowOwner::ring_b);
        const unsigned completed = dst_.advance();
        group_begun_ = false;
        if (op_->ring_read.fires(completed, op_->dst.dimensions)) work.count(counter);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
