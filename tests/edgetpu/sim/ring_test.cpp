// Which messages the receivers of a ring get, and that nobody's message is another one's.
#include "edgetpu/sim/tile/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "edgetpu/sim/machine/machine.h"

namespace reef::edgetpu::sim {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint32_t every_tile = (1U << tile_count) - 1;

/// One ring as the machine uses it, beside queues of whole messages.
class RingAndModel {
  public:
    RingAndModel() {
        for (unsigned tile = 0; tile < tile_count; ++tile)
            queues_[tile].connect(*places_, store_.messages(), tile);
    }

    [[nodiscard]] unsigned room(std::uint32_t tiles) const {
        unsigned room = RingQueue::capacity;
        for (unsigned tile = 0; tile < tile_count; ++tile)
            if ((tiles >> tile & 1U) != 0)
                room = std::min(room, RingQueue::capacity - queues_[tile].size());
        return room;
    }
    void send(std::uint32_t tiles, std::uint32_t messages, std::size_t size, const Bytes& data) {
        if (places_->are_level(tiles)) {
            ++to_all_;
            store_.put_to_all(ring, places_->pushed(), messages, size, data.data());
            places_->push_to_all(messages, store_.to_all(ring, size));
        } else {
            for (std::uint32_t i = 0; i < messages; ++i) {
                const auto each = [&](auto&& look) { std::ranges::for_each(queues_, look); };
                ASSERT_GT(store_.room(size, each), 0U);
                places_->push(tiles, store_.put({data.data() + i * size, size}));
            }
        }
        for (std::uint32_t i = 0; i < messages; ++i)
            for (unsigned tile = 0; tile < tile_count; ++tile)
                if ((tiles >> tile & 1U) != 0)
                    model_[tile].emplace_back(
                        data.begin() + static_cast<std::ptrdiff_t>(i * size),
                        data.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
    }
    void take(unsigned tile, unsigned messages) {
        const unsigned taken =
            queues_[tile].pop_while(messages, [&](std::span<const std::uint8_t> message) {
                const bool equal = std::ranges::equal(message, model_[tile].front());
                EXPECT_TRUE(equal) << "tile " << tile;
                model_[tile].pop_front();
                return equal;
            });
        ASSERT_EQ(taken, messages);
        ASSERT_EQ(queues_[tile].size(), model_[tile].size());
    }
    [[nodiscard]] unsigned waiting(unsigned tile) const { return queues_[tile].size(); }
    [[nodiscard]] unsigned sent_to_all() const { return to_all_; }
    void level() {
        places_->level();
        for (RingQueue& queue : queues_) queue.clear();
        for (auto& messages : model_) messages.clear();
    }

  private:
    static constexpr unsigned ring = 1;
    MessageStore store_{2, 2 * tile_count};
    std::unique_ptr<RingPlaces> places_ = std::make_unique<RingPlaces>();
    std::array<RingQueue, tile_count> queues_;
    std::array<std::deque<Bytes>, tile_count> model_;
    unsigned to_all_ = 0;
};

TEST(Rings, ReceiversGetWhatWasSentToThemInOrder) {
    std::mt19937 random(7);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
    RingAndModel ring;
    for (unsigned turn = 0; turn < 20'000; ++turn) {
        // Mostly to all, so that they stay level for long.
        const bool level = turn / 2000 % 2 == 0;
        const std::uint32_t tiles = level || below(2) == 0 ? every_tile : 1 + below(every_tile);
        if (turn % 2000 == 0) ring.level();
        constexpr std::array<unsigned, 5> sizes = {16, row_bytes, 0, 7, 100};
        const unsigned size = sizes[below(sizes.size())];
        const unsigned messages =
            std::min(below(4) == 0 ? below(RingQueue::capacity + 1) : below(4), ring.room(tiles));
        Bytes data(std::size_t{messages} * size);
        data.reserve(1);  // so that it has an address
        std::ranges::generate(data, random);
        ring.send(tiles, messages, size, data);
        for (unsigned tile = 0; tile < tile_count; ++tile)
            if (const unsigned waiting = ring.waiting(tile); below(3) == 0)
                ring.take(tile, below(waiting + 1));
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(ring.sent_to_all(), 1000U);
}

TEST(Rings, RowsThatAreKeptAreNotCopied) {
    constexpr auto all = static_cast<std::uint16_t>((1U << tile_count) - 1);
    const auto is_copied = [](const MachineOptions& options, std::uint16_t tiles,
                              std::uint16_t bytes, bool kept) {
        Machine machine(options);
        TileMemory& memory = machine.tile(3).memory;
        memory.row_length[7] = bytes;
        EXPECT_EQ(machine.ring_send_rows(Ring::a, tiles, memory,
                                         {.first = 7, .step = 1, .count = 1, .kept = kept}),
                  1U);
        return machine.tile(0).rings[0].front().data() != memory.wide[7].data();
    };
    EXPECT_FALSE(is_copied({}, all, row_bytes, true));
    EXPECT_FALSE(is_copied({}, all, Messages::short_bytes + 1, true));
    EXPECT_TRUE(is_copied({}, all, Messages::short_bytes, true));
    EXPECT_TRUE(is_copied({}, all, row_bytes, false));
    EXPECT_TRUE(is_copied({}, 1, row_bytes, true));
    EXPECT_TRUE(is_copied({.strict = true}, all, row_bytes, true));
    EXPECT_TRUE(is_copied({.random_seed = 1}, all, row_bytes, true));
}

TEST(Rings, RowsAreSentWhileThereIsRoom) {
    std::mt19937 random(11);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
    constexpr unsigned sender = 3;
    Machine machine;
    TileMemory& memory = machine.tile(sender).memory;
    unsigned cut_short = 0;
    for (unsigned turn = 0; turn < 200; ++turn) {
        const std::uint32_t apart = std::array{1U, 2U, 0U, ~0U, ~6U}[below(5)];
        const auto rows = 1 + below(2 * RingQueue::capacity);
        const std::uint32_t first = static_cast<std::int32_t>(apart) < 0 ? wide_rows - 1 : 0;
        // Of the machine's two kinds of messages, in turn.
        for (std::uint32_t row = 0; row < wide_rows; ++row) {
            memory.row_length[row] = static_cast<std::uint16_t>(
                below(2) == 0 ? below(Messages::short_bytes + 2) : below(row_bytes + 1));
            std::ranges::generate(memory.wide[row], random);
        }
        const std::uint32_t tiles = below(3) == 0 ? 1 + below(every_tile) : every_tile;
        const auto receivers = static_cast<std::uint16_t>(tiles);
        if (!machine.ring_has_room(Ring::b, receivers, false)) continue;
        const std::uint32_t most = std::min<std::uint32_t>(rows, wide_rows / 8);
        const bool kept = below(2) == 0;
        const std::uint32_t sent =
            machine.ring_send_rows(Ring::b, receivers, memory,
                                   {.first = first, .step = apart, .count = most, .kept = kept});
        cut_short += sent < most ? 1 : 0;
        const TileMemory as_sent = memory;
        // Others may be written before anybody has received the messages.
        if (!kept)
            for (auto& row : memory.wide) std::ranges::generate(row, random);
        for (unsigned tile = 0; tile < tile_count; ++tile) {
            RingQueue& queue = machine.tile(tile).rings[static_cast<unsigned>(Ring::b)];
            if ((tiles >> tile & 1U) == 0) continue;
            // All but the last `sent` were looked at when they came.
            const unsigned before = queue.size() - sent;
            for (unsigned i = 0; i < before; ++i) queue.pop();
            for (std::uint32_t i = 0; i < sent; ++i) {
                const std::uint32_t row = first + i * apart;
                ASSERT_TRUE(std::ranges::equal(
                    queue.front(), std::span(as_sent.wide[row]).first(as_sent.row_length[row])))
                    << "turn " << turn << ", tile " << tile << ", message " << i;
                if (i + 1 < sent || below(2) == 0) queue.pop();
            }
        }
    }
    EXPECT_GT(cut_short, 0U);
}

}  // namespace
}  // namespace reef::edgetpu::sim
