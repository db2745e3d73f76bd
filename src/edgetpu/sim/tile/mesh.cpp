// Mesh engines: words travel between neighbouring tiles; at the edge a constant takes their place.
#include <fmt/format.h>

#include <algorithm>

#include "engines.h"

namespace reef::edgetpu::sim {
namespace {

namespace counter = spec::value::tile_counter;

// What goes south arrives from the north.
constexpr std::array in_counter = {counter::MESH_NORTH_IN_, counter::MESH_EAST_IN_,
                                   counter::MESH_SOUTH_IN_, counter::MESH_WEST_IN_};
constexpr std::array out_counter = {counter::MESH_SOUTH_OUT_, counter::MESH_WEST_OUT_,
                                    counter::MESH_NORTH_OUT_, counter::MESH_EAST_OUT_};

// From one word to the next in a pass, in bytes.
std::ptrdiff_t distance(const Nest& nest) {
    return static_cast<std::ptrdiff_t>(narrow_word_bytes) * nest.step[0];
}

constexpr Direction opposite(Direction to) {
    constexpr unsigned directions = 4;
    return static_cast<Direction>((static_cast<unsigned>(to) + directions / 2) % directions);
}
static_assert(opposite(Direction::south) == Direction::north);
static_assert(opposite(Direction::east) == Direction::west);

}  // namespace

Outcome MeshEngine::send(Work& work) {
    bool moved = false;
    MeshLink* const link = work.fabric.link_from(work.tile.number, op_->to);
    if (link == nullptr) return work.stop("sends over the edge of the grid");
    while (!src_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, false, src_))
            return work.wait(*unready, moved);
        if (link->room(work.round, 1) == 0) return work.wait(Blocked::On::mesh_full, moved);
        const auto word_at = static_cast<std::uint32_t>(src_.address());
        if (word_at >= narrow_words)
            return work.stop(fmt::format("reads narrow word {:#x}", word_at));
        const std::size_t at = word_at * narrow_word_bytes;
        work.witness.reads(Watched::narrow, word_at);
        if (work.witness)
            work.witness.monitor->mesh_sent(
                work.witness.actor, work.fabric.neighbour(work.tile.number, op_->to), op_->to);
        const unsigned words =
            link->room(work.round, work.run(op_->waits, false, src_, narrow_words));
        link->push(work.round, &work.tile.memory.narrow[at], distance(op_->src), words);
        work.reached |= 1U << Fabric::neighbour(work.tile.number, op_->to);
        work.count(out_counter[static_cast<unsigned>(op_->to)],
                   op_->out.events(words, src_.advance(words), op_->src.dimensions));
        moved = true;
        work.spend(words);
    }
    sending_ = false;
    return Outcome::done;
}

Outcome MeshEngine::receive(Work& work) {
    bool moved = false;
    MeshLink& link = work.tile.arrived[static_cast<unsigned>(op_->to)];
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, true, dst_))
            return work.wait(*unready, moved);
        if (!op_->fills && link.size(work.round, 1) == 0)
            return work.wait(Blocked::On::mesh_empty, moved);
        const auto word_at = static_cast<std::uint32_t>(dst_.address());
        if (word_at >= narrow_words)
            return work.stop(fmt::format("writes narrow word {:#x}", word_at));
        const std::size_t at = word_at * narrow_word_bytes;
        std::uint32_t words = work.run(op_->waits, true, dst_, narrow_words);
        if (!op_->fills) words = link.size(work.round, words);
        auto* to = &work.tile.memory.narrow[at];
        const std::ptrdiff_t step = distance(op_->dst);
        if (op_->fills) {
            for (std::uint32_t i = 0; i < words; ++i)
                std::memcpy(to + i * step, &op_->fill_value, narrow_word_bytes);
        } else {
            link.pop(work.round, to, step, words);
            work.reached |= 1U << Fabric::neighbour(work.tile.number, opposite(op_->to));
        }
        if (work.witness && !op_->fills)
            work.witness.monitor->mesh_received(work.witness.actor, work.tile.number, op_->to);
        work.witness.writes(Watched::narrow, word_at);
        work.count(in_counter[static_cast<unsigned>(op_->to)],
                   op_->in.events(words, dst_.advance(words), op_->dst.dimensions));
        moved = true;
        work.spend(words);
    }
    receiving_ = false;
    return Outcome::done;
}

Outcome MeshEngine::advance(Work& work) {
    bool moved = false;
    // Waits of a side that the transfer does not have hold back all of it.
    if (!op_->sends) {
        if (const auto unready = work.unready(op_->waits, false, src_))
            return work.wait(*unready, false);
    }
    if (receiving_) moved = receive(work) != Outcome::waiting;
    if (work.fault) return Outcome::waiting;
    if (sending_) moved |= send(work) != Outcome::waiting;
    if (work.fault) return Outcome::waiting;
    if (!sending_ && !receiving_) return Outcome::done;
    return moved ? Outcome::moved : Outcome::waiting;
}

}  // namespace reef::edgetpu::sim
