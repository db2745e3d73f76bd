// Ring consumers: one message becomes one wide row.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {

void RingReceiveEngine::begin_group() {
    group_begun_ = true;
    if (op_->head.enabled && dst_.at_pass_start(std::max(op_->head.level, 1U)))
        heads_due_ = op_->head.rows;
}

namespace {

void copy_message(Work& work, std::span<const std::uint8_t> message, std::uint32_t row) {
    auto& memory = work.tile.memory;
    std::uint8_t* to = memory.wide[row].data();
    // Sizes that are known make no call; messages of one vector are the most.
    constexpr std::size_t vector = 16;
    if (message.size() == vector)
        std::memcpy(to, message.data(), vector);
    else if (message.size() == row_bytes)
        std::memcpy(to, message.data(), row_bytes);
    else
        std::memcpy(to, message.data(), message.size());
    memory.row_length[row] = static_cast<std::uint16_t>(message.size());
    if (work.word_tags) memory.row_format[row] = RowFormat::plain_;
}

}  // namespace

bool RingReceiveEngine::take_head(Work& work, RingQueue& queue) {
    if (!receive(work, queue, static_cast<std::uint32_t>(head_row_))) return false;
    head_row_ = head_row_ == op_->head.last ? op_->head.base : head_row_ + 1;
    --heads_due_;
    return true;
}

bool RingReceiveEngine::receive(Work& work, RingQueue& queue, std::uint32_t row) {
    if (row >= wide_rows) {
        work.stop(fmt::format("writes wide row {:#x}", static_cast<std::int32_t>(row)));
        return false;
    }
    copy_message(work, queue.front(), row);
    queue.pop();
    if (work.witness)
        work.witness.monitor->received(work.witness.actor, work.tile.number, op_->ring);
    work.witness.writes(Watched::wide, row, true);
    return true;
}

// Rows that follow each other, of which the first may be filled; how many. 0: it does not exist.
std::uint32_t RingReceiveEngine::take_rows(Work& work, RingQueue& queue) {
    const auto owner = op_->ring == Ring::a ? RowOwner::ring_a : RowOwner::ring_b;
    const auto row = static_cast<std::uint32_t>(dst_.address());
    const std::uint32_t most =
        op_->waits.least_level == 0
            ? 1
            : std::min(work.run(op_->waits, true, dst_, wide_rows), std::uint32_t{queue.size()});
    if (!receive(work, queue, row)) return 0;
    work.fill(op_->dst, row, owner);
    RowMarks& marks = work.tile.memory.full;
    const bool rotates = op_->dst.rotates();
    const bool stops = rotates && work.full_bits;
    const auto step = static_cast<std::uint32_t>(op_->dst.step[0]);
    std::uint32_t at = row;
    return 1 + queue.pop_while(most - 1, [&](std::span<const std::uint8_t> message) {
        at += step;
        if (stops && marks[at] != RowOwner::none) return false;
        copy_message(work, message, at);
        if (rotates) marks.fill(at, owner);
        return true;
    });
}

Outcome RingReceiveEngine::advance(Work& work) {
    const auto counter = op_->ring == Ring::a ? spec::value::tile_counter::RING_READ_A_
                                              : spec::value::tile_counter::RING_READ_B_;
    RingQueue& queue = work.tile.rings[static_cast<unsigned>(op_->ring)];
    bool moved = false;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        auto unready = work.unready(op_->waits, true, dst_);
        if (!unready) unready = work.unready(op_->waits, false, dst_);
        if (unready) return work.wait(*unready, moved);
        if (!group_begun_) begin_group();
        if (queue.empty()) return work.wait(Blocked::On::ring_empty, moved);
        if (heads_due_ > 0) {
            if (!take_head(work, queue)) return Outcome::waiting;
            moved = true;
            work.spend(1);
            continue;
        }
        if (const auto row = static_cast<std::uint32_t>(dst_.address()); work.full(op_->dst, row))
            return work.wait_for_row(row, moved);
        const std::uint32_t rows = take_rows(work, queue);
        if (rows == 0) return Outcome::waiting;
        group_begun_ = false;
        work.count(counter, op_->ring_read.events(rows, dst_.advance(rows), op_->dst.dimensions));
        moved = true;
        work.spend(rows);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
