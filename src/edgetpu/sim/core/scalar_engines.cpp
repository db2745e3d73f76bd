#include "scalar_engines.h"

namespace reef::edgetpu::sim {
namespace {

namespace counter = spec::value::scalar_counter;

// Counters of a FIFO are named for the engine that waits on them: POP counts what an infeed has
// brought, INFEED the room that a push has made.
unsigned arrived_counter(bool activations) {
    return activations ? counter::AVDATA_POP_ : counter::PARAMETER_POP_;
}
Watched watched(Fifo fifo) {
    if (fifo == Fifo::parameters_) return Watched::parameter_fifo;
    return fifo == Fifo::activations_ ? Watched::activation_fifo : Watched::scalar_memory;
}
unsigned room_counter(Fifo fifo) {
    if (fifo == Fifo::parameters_) return counter::PARAMETER_INFEED_;
    return fifo == Fifo::activations_ ? counter::AVDATA_INFEED_ : counter::SCALAR_INFEED_;
}

}  // namespace

Outcome InfeedEngine::advance(ScalarEngineWork& work) {
    bool moved = false;
    FifoMemory& fifo = op_->activations() ? work.scalar.activations : work.scalar.parameters;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits.view(), dst_))
            return moved ? Outcome::moved : work.wait(*unready);
        if (!work.host.take(op_->activations(), fifo.unit(dst_.address())))
            return moved ? Outcome::moved : work.wait(Blocked::On::host_empty);
        const Fifo which = op_->activations() ? Fifo::activations_ : Fifo::parameters_;
        work.witness.writes(watched(which), work.scalar.index(which, dst_.address()));
        if (op_->infeed.fires(dst_.advance(), op_->dst.dimensions))
            work.count(arrived_counter(op_->activations()));
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    return Outcome::done;
}

// Sends whole messages, and what remains at the end of the walk.
bool RingPushEngine::flush(ScalarEngineWork& work) {
    while (filled_ >= op_->message_bytes || (src_.done() && filled_ > 0)) {
        if (!work.fabric.ring_has_room(Ring::a, op_->to_tiles, false)) return false;
        const std::size_t size = std::min<std::size_t>(filled_, op_->message_bytes);
        if (work.witness)
            work.witness.monitor->sent(work.witness.actor, Ring::a, op_->to_tiles, false);
        work.fabric.ring_send(Ring::a, op_->to_tiles, false, std::span(buffer_).first(size));
        filled_ -= size;
        std::memmove(buffer_.data(), buffer_.data() + size, filled_);
    }
    for (; producers_due_ > 0; --producers_due_) {
        work.fabric.count_producer(Ring::a);
        if (work.witness) work.witness.monitor->ring_counted(work.witness.actor, Ring::a);
    }
    return true;
}

Outcome RingPushEngine::advance(ScalarEngineWork& work) {
    bool moved = false;
    while (true) {
        if (!flush(work)) return moved ? Outcome::moved : work.wait(Blocked::On::ring_full);
        if (src_.done()) return Outcome::done;
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits.view(), src_))
            return moved ? Outcome::moved : work.wait(*unready);
        const auto unit = work.scalar.unit(op_->fifo, src_.address());
        std::memcpy(&buffer_[filled_], unit.data(), unit.size());
        work.witness.reads(watched(op_->fifo), work.scalar.index(op_->fifo, src_.address()));
        filled_ += unit.size();
        const unsigned completed = src_.advance();
        if (op_->pop.fires(completed, op_->src.dimensions)) work.count(room_counter(op_->fifo));
        if (op_->producer.fires(completed, op_->src.dimensions)) ++producers_due_;
        moved = true;
        if (work.budget > 0) --work.budget;
    }
}

Outcome RingPopEngine::advance(ScalarEngineWork& work) {
    bool moved = false;
    const std::size_t unit_bytes = op_->to_host ? activation_unit_bytes : relay_unit_bytes;
    RingQueue& queue = work.scalar.arrived;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits.view(), dst_))
            return moved ? Outcome::moved : work.wait(*unready);
        if (at_ == size_) {
            if (queue.empty()) return moved ? Outcome::moved : work.wait(Blocked::On::ring_empty);
            const Message& message = queue.front();
            message_.fill(0);
            std::memcpy(message_.data(), message.bytes.data(), message.size);
            // To the host, a message is padded to whole units; in scalar memory every message
            // takes the same place.
            size_ = op_->to_host ? (message.size + unit_bytes - 1) / unit_bytes * unit_bytes
                                 : op_->message_bytes;
            at_ = 0;
            queue.pop();
            if (work.witness) work.witness.monitor->scalar_received(work.witness.actor);
            moved = true;
            continue;
        }
        const auto unit = std::span(message_).subspan(at_, unit_bytes);
        if (op_->to_host) {
            if (!work.host.has_room(unit_bytes))
                return moved ? Outcome::moved : work.wait(Blocked::On::host_full);
            if (auto given = work.host.give(unit); !given) {
                work.fault = Fault{given.error().what, given.error().hint};
                return Outcome::waiting;
            }
        } else {
            std::memcpy(work.scalar.unit(Fifo::relay_, dst_.address()).data(), unit.data(),
                        unit_bytes);
            work.witness.writes(Watched::scalar_memory,
                                work.scalar.index(Fifo::relay_, dst_.address()));
        }
        at_ += unit_bytes;
        if (op_->outfeed.fires(dst_.advance(), op_->dst.dimensions))
            work.count(counter::RING_OUTFEED_);
        moved = true;
        if (work.budget > 0) --work.budget;
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
