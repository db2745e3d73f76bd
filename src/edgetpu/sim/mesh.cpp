// Mesh engines: words travel between neighbouring tiles; at the edge a constant takes their place.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {
namespace {

namespace counter = spec::value::tile_counter;

// What goes south arrives from the north.
constexpr std::array in_counter = {counter::MESH_NORTH_IN_, counter::MESH_EAST_IN_,
                                   counter::MESH_SOUTH_IN_, counter::MESH_WEST_IN_};
constexpr std::array out_counter = {counter::MESH_SOUTH_OUT_, counter::MESH_WEST_OUT_,
                                    counter::MESH_NORTH_OUT_, counter::MESH_EAST_OUT_};

}  // namespace

Outcome MeshEngine::send(Work& work) {
    bool moved = false;
    MeshLink* const link = work.fabric.link_from(work.tile.number, op_->to);
    if (link == nullptr) return work.stop("sends over the edge of the grid");
    while (!src_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits.view(), false, src_))
            return moved ? Outcome::moved : work.wait(*unready);
        if (link->full()) return moved ? Outcome::moved : work.wait(Blocked::On::mesh_full);
        const auto at = static_cast<std::uint32_t>(src_.address()) * narrow_word_bytes;
        if (at >= narrow_bytes) return work.stop(fmt::format("reads narrow byte {:#x}", at));
        work.witness.reads(Watched::narrow, at / narrow_word_bytes);
        if (work.witness)
            work.witness.monitor->mesh_sent(
                work.witness.actor, work.fabric.neighbour(work.tile.number, op_->to), op_->to);
        link->push(TileMemory::read<std::uint32_t>(&work.tile.memory.narrow[at]));
        if (op_->out.fires(src_.advance(), op_->src.dimensions))
            work.count(out_counter[static_cast<unsigned>(op_->to)]);
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    sending_ = false;
    return Outcome::done;
}

Outcome MeshEngine::receive(Work& work) {
    bool moved = false;
    MeshLink& link = work.tile.arrived[static_cast<unsigned>(op_->to)];
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits.view(), true, dst_))
            return moved ? Outcome::moved : work.wait(*unready);
        if (!op_->fills && link.empty())
            return moved ? Outcome::moved : work.wait(Blocked::On::mesh_empty);
        const auto at = static_cast<std::uint32_t>(dst_.address()) * narrow_word_bytes;
        if (at >= narrow_bytes) return work.stop(fmt::format("writes narrow byte {:#x}", at));
        const std::uint32_t word = op_->fills ? op_->fill_value : link.pop();
        std::memcpy(&work.tile.memory.narrow[at], &word, sizeof word);
        if (work.witness && !op_->fills)
            work.witness.monitor->mesh_received(work.witness.actor, work.tile.number, op_->to);
        work.witness.writes(Watched::narrow, at / narrow_word_bytes);
        if (op_->in.fires(dst_.advance(), op_->dst.dimensions))
            work.count(in_counter[static_cast<unsigned>(op_->to)]);
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    receiving_ = false;
    return Outcome::done;
}

Outcome MeshEngine::advance(Work& work) {
    bool moved = false;
    // Waits of a side that the transfer does not have hold back all of it.
    if (!op_->sends) {
        if (const auto unready = work.unready(op_->waits.view(), false, src_))
            return work.wait(*unready);
    }
    if (receiving_) moved = receive(work) != Outcome::waiting;
    if (work.fault) return Outcome::waiting;
    if (sending_) moved |= send(work) != Outcome::waiting;
    if (work.fault) return Outcome::waiting;
    if (!sending_ && !receiving_) return Outcome::done;
    return moved ? Outcome::moved : Outcome::waiting;
}

}  // namespace reef::edgetpu::sim
