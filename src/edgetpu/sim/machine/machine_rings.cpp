// The machine's buses: what engines send to others.
#include <algorithm>
#include <utility>

#include "machine.h"

namespace reef::edgetpu::sim {

// Many messages go to the same tiles: what is room for all of them is looked up once.
bool Machine::ring_has_room(Ring ring, std::uint16_t tiles, bool scalar) const {
    const auto r = static_cast<unsigned>(ring);
    const unsigned most = short_queues() ? RingQueue::depth : RingQueue::capacity;
    if (scalar && scalar_.arrived.size() == most) return false;
    if (sure_room_[r] > 0) return true;
    sure_room_[r] = most;
    bool room = true;
    for (unsigned tile = 0; tile < tile_count; ++tile) {
        const unsigned size = units_[tile]->tile.rings[r].size();
        sure_room_[r] = std::min(sure_room_[r], most - size);
        room &= size < most || (tiles >> tile & 1U) == 0;
    }
    return room;
}

std::size_t Machine::room_for_messages(std::size_t size) {
    return messages_.room(size, [&](auto&& look) {
        look(scalar_.arrived);
        for (const auto* unit : units_) std::ranges::for_each(unit->tile.rings, look);
    });
}

// To some tiles, to tiles that have got more and less before, or to the scalar core.
void Machine::send_some(Ring ring, std::uint16_t tiles, bool scalar,
                        std::span<const std::uint8_t> data) {
    (void)room_for_messages(data.size());
    const std::uint16_t message = messages_.put(data);
    if (scalar) to_core_.push(1, message);
    to_tiles_[static_cast<unsigned>(ring)].push(tiles, message);
}

void Machine::ring_send(Ring ring, std::uint16_t tiles, bool scalar,
                        std::span<const std::uint8_t> data) {
    const auto r = static_cast<unsigned>(ring);
    RingPlaces& places = to_tiles_[r];
    if (!scalar && places.are_level(tiles)) {
        messages_.put_to_all(r, places.pushed(), 1, data.size(), data.data());
        places.push_to_all(1, messages_.to_all(r, data.size()));
    } else {
        send_some(ring, tiles, scalar, data);
    }
    awake_ |= tiles;
    if (sure_room_[r] > 0) --sure_room_[r];
}

// So many messages, while there is room for them; how many. Where the tiles are all and have got
// equally many, `put(first, most)` enters some from the first on, one at least, and says how many;
// else they go one by one, each as `message` says.
std::uint32_t Machine::send_while_room(Ring ring, std::uint16_t tiles, std::uint32_t messages,
                                       auto&& put, auto&& message) {
    const auto r = static_cast<unsigned>(ring);
    std::uint32_t sent = 0;
    while (sent < messages && ring_has_room(ring, tiles, false)) {
        std::uint32_t some = 1;
        if (to_tiles_[r].are_level(tiles))
            some = put(sent, std::min(messages - sent, sure_room_[r]));
        else
            send_some(ring, tiles, false, message(sent));
        sure_room_[r] -= std::min(sure_room_[r], some);
        sent += some;
    }
    if (sent > 0) awake_ |= tiles;
    return sent;
}

std::size_t Machine::ring_send_each(Ring ring, std::uint16_t tiles, std::size_t size,
                                    std::span<const std::uint8_t> data) {
    const auto r = static_cast<unsigned>(ring);
    RingPlaces& places = to_tiles_[r];
    const auto message = [&](std::uint32_t i) { return data.subspan(i * size, size); };
    const auto put = [&](std::uint32_t first, std::uint32_t most) {
        messages_.put_to_all(r, places.pushed(), most, size, &data[first * size]);
        places.push_to_all(most, messages_.to_all(r, size));
        return most;
    };
    const auto messages = static_cast<std::uint32_t>(data.size() / size);
    return send_while_room(ring, tiles, messages, put, message);
}

std::uint32_t Machine::ring_send_rows(Ring ring, std::uint16_t tiles, const TileMemory& memory,
                                      const Rows& rows) {
    const auto r = static_cast<unsigned>(ring);
    RingPlaces& places = to_tiles_[r];
    const auto message = [&](std::uint32_t i) {
        const std::uint32_t row = rows.first + i * rows.step;
        return std::span(memory.wide[row]).first(memory.row_length[row]);
    };
    // Runs that try the chip's rules copy all, as the chip does.
    const bool is_lent = rows.kept && !short_queues();
    // Those whose numbers are of one kind.
    const auto put = [&](std::uint32_t first, std::uint32_t most) {
        const std::uint16_t numbers = messages_.to_all(r, message(first).size());
        std::uint32_t some = 0;
        for (; some < most; ++some) {
            const auto data = message(first + some);
            if (messages_.to_all(r, data.size()) != numbers) break;
            if (is_lent && MessageStore::may_refer(data.size()))
                messages_.refer_to_all(r, places.pushed() + some, data);
            else
                messages_.put_to_all(r, places.pushed() + some, 1, data.size(), data.data());
        }
        places.push_to_all(some, numbers);
        return some;
    };
    return send_while_room(ring, tiles, rows.count, put, message);
}

// Every tile counts it. Of the others it is the tile that sends which looks at once.
void Machine::count_producer(Ring ring, unsigned events) {
    namespace scalar = spec::value::scalar_counter;
    awake_ |= awaiting_[static_cast<unsigned>(ring)];
    auto& produced = round_.produced[static_cast<unsigned>(ring)];
    produced = static_cast<std::uint16_t>(produced + events);
    scalar_.counters.count(ring == Ring::a ? scalar::PRODUCER_A_ : scalar::PRODUCER_B_, events);
    if (in_any_order()) count_produced();
    if (sender_ != nullptr) count_produced(*sender_, round_);
}

void Machine::count_produced(TileUnit& unit, const Round& round) {
    namespace counter = spec::value::tile_counter;
    constexpr std::array counters = {counter::RING_PRODUCER_A_, counter::RING_PRODUCER_B_};
    for (unsigned ring = 0; ring < counters.size(); ++ring)
        unit.tile.counters.count(
            counters[ring], static_cast<std::uint16_t>(
                                round.produced[ring] -
                                std::exchange(unit.produced_counted[ring], round.produced[ring])));
}

void Machine::count_produced() const {
    for (auto* unit : units_) count_produced(*unit, round_);
}

MeshLink* Machine::link_from(unsigned tile, Direction to) {
    const unsigned row = tile / grid_side;
    const unsigned column = tile % grid_side;
    constexpr unsigned last = grid_side - 1;
    if ((to == Direction::south && row == last) || (to == Direction::north && row == 0) ||
        (to == Direction::east && column == last) || (to == Direction::west && column == 0))
        return nullptr;
    return &units_[neighbour(tile, to)]->tile.arrived[static_cast<unsigned>(to)];
}

}  // namespace reef::edgetpu::sim
