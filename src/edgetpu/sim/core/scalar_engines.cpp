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
    const bool activations = op_->activations();
    const Fifo fifo = activations ? Fifo::activations_ : Fifo::parameters_;
    const std::size_t unit_bytes = ScalarState::unit_bytes(fifo);
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, dst_)) return work.wait(*unready, moved);
        const std::int32_t address = dst_.address();
        const std::size_t most =
            unit_bytes * work.run(op_->waits, dst_, parameter_fifo_units, fifo);
        const auto units = static_cast<std::uint32_t>(work.host.take_units(
            activations, unit_bytes, work.scalar.from(fifo, address).first(most)));
        if (units == 0) return work.wait(Blocked::On::host_empty, moved);
        if (work.witness) work.witness.writes(watched(fifo), ScalarState::index(fifo, address));
        work.count(arrived_counter(activations),
                   op_->infeed.events(units, dst_.advance(units), op_->dst.dimensions));
        moved = true;
        work.spend(units);
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
        if (filled_ > 0) std::memmove(buffer_.data(), buffer_.data() + size, filled_);
    }
    for (; producers_due_ > 0; --producers_due_) {
        work.fabric.count_producer(Ring::a, 1);
        if (work.witness) work.witness.monitor->ring_counted(work.witness.actor, Ring::a);
    }
    return true;
}

// Whole messages from the FIFO, up to the end of a pass or of the budget; their units. 0: there is
// none, or no room for it. A producer that counts each unit does so between two of them.
std::uint32_t RingPushEngine::send_units(ScalarEngineWork& work) {
    const std::size_t unit_bytes = ScalarState::unit_bytes(op_->fifo);
    const bool one_by_one = op_->producer.enabled && op_->producer.level == 0;
    if (filled_ > 0 || work.witness || one_by_one || op_->message_bytes % unit_bytes != 0) return 0;
    const auto units_of_message = static_cast<std::uint32_t>(op_->message_bytes / unit_bytes);
    const std::uint32_t units = work.run(op_->waits, src_, parameter_fifo_units, op_->fifo);
    const auto from = work.scalar.from(op_->fifo, src_.address()).first(units * unit_bytes);
    const std::size_t sent =
        work.fabric.ring_send_each(Ring::a, op_->to_tiles, op_->message_bytes, from);
    return static_cast<std::uint32_t>(sent) * units_of_message;
}

// Units up to the end of a message, of a pass or of the budget; how many.
std::uint32_t RingPushEngine::copy_units(ScalarEngineWork& work) {
    const std::size_t unit_bytes = ScalarState::unit_bytes(op_->fifo);
    const std::size_t missing =
        op_->message_bytes - std::min<std::size_t>(filled_, op_->message_bytes);
    const std::size_t wanted = (missing + unit_bytes - 1) / unit_bytes;
    // A producer counts between two units, should each of them be one.
    const bool one_by_one = op_->producer.enabled && op_->producer.level == 0;
    const std::uint32_t units =
        one_by_one ? 1 : work.run(op_->waits, src_, std::max<std::size_t>(wanted, 1), op_->fifo);
    const auto from = work.scalar.from(op_->fifo, src_.address()).first(units * unit_bytes);
    std::memcpy(&buffer_[filled_], from.data(), from.size());
    filled_ += from.size();
    return units;
}

Outcome RingPushEngine::advance(ScalarEngineWork& work) {
    bool moved = false;
    const unsigned dimensions = op_->src.dimensions;
    while (true) {
        if (!flush(work)) return work.wait(Blocked::On::ring_full, moved);
        if (src_.done()) return Outcome::done;
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, src_)) return work.wait(*unready, moved);
        if (work.witness)
            work.witness.reads(watched(op_->fifo), ScalarState::index(op_->fifo, src_.address()));
        std::uint32_t units = send_units(work);
        if (units == 0) units = copy_units(work);
        const unsigned completed = src_.advance(units);
        work.count(room_counter(op_->fifo), op_->pop.events(units, completed, dimensions));
        producers_due_ += op_->producer.events(units, completed, dimensions);
        moved = true;
        work.spend(units);
    }
}

void RingPopEngine::take_message(ScalarEngineWork& work) {
    RingQueue& queue = work.scalar.arrived;
    const std::span<const std::uint8_t> message = queue.front();
    std::memcpy(message_.data(), message.data(), message.size());
    // To the host, a message is padded to whole units; in scalar memory every message takes the
    // same place.
    size_ = op_->to_host ? (message.size() + activation_unit_bytes - 1) / activation_unit_bytes *
                               activation_unit_bytes
                         : op_->message_bytes;
    if (size_ > message.size()) std::memset(&message_[message.size()], 0, size_ - message.size());
    at_ = 0;
    queue.pop();
    if (work.witness) work.witness.monitor->scalar_received(work.witness.actor);
}

// The message's units up to the end of a pass, or one where the host has no room for them all.
// Returns how many; 0: there is room for none, or the host did not take them.
std::uint32_t RingPopEngine::give_units(ScalarEngineWork& work) {
    std::uint32_t units = work.run(op_->waits, dst_, (size_ - at_) / activation_unit_bytes);
    if (!work.host.has_room(units * activation_unit_bytes)) units = 1;
    if (!work.host.has_room(activation_unit_bytes)) return 0;
    const auto given =
        work.host.give(std::span(message_).subspan(at_, units * activation_unit_bytes));
    if (!given) work.fault = std::make_unique<Fault>(given.error().what, given.error().hint);
    return given ? units : 0;
}

// The message's words up to the end of a pass; how many.
std::uint32_t RingPopEngine::store_units(ScalarEngineWork& work) {
    const std::uint32_t units =
        work.run(op_->waits, dst_, (size_ - at_) / relay_unit_bytes, Fifo::relay_);
    std::memcpy(work.scalar.from(Fifo::relay_, dst_.address()).data(), &message_[at_],
                units * relay_unit_bytes);
    if (work.witness)
        work.witness.writes(Watched::scalar_memory,
                            ScalarState::index(Fifo::relay_, dst_.address()));
    return units;
}

Outcome RingPopEngine::advance(ScalarEngineWork& work) {
    bool moved = false;
    const std::size_t unit_bytes = op_->to_host ? activation_unit_bytes : relay_unit_bytes;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, dst_)) return work.wait(*unready, moved);
        if (at_ == size_) {
            if (work.scalar.arrived.empty()) return work.wait(Blocked::On::ring_empty, moved);
            take_message(work);
            moved = true;
            continue;
        }
        std::uint32_t units = 1;
        if (op_->to_host) {
            units = give_units(work);
            if (work.fault) return Outcome::waiting;
            if (units == 0) return work.wait(Blocked::On::host_full, moved);
        } else {
            units = store_units(work);
        }
        at_ += units * unit_bytes;
        work.count(counter::RING_OUTFEED_,
                   op_->outfeed.events(units, dst_.advance(units), op_->dst.dimensions));
        moved = true;
        work.spend(units);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
