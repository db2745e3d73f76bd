// narrow_to_wide a word at a time, and many in one turn: equal memories wherever it waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "edgetpu/sim/tile/engines.h"
#include "no_fabric.h"
#include "same_memory.h"

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned rows_written = spec::value::tile_counter::NARROW_TO_WIDE_;

class RandomRows {
  public:
    explicit RandomRows(unsigned seed) : random_(seed) {}

    NarrowToWide op() {
        NarrowToWide op;
        constexpr std::array formats = {RowFormat::plain_, RowFormat::transpose_bytes_,
                                        RowFormat::transpose_halfwords_};
        op.format = formats.at(below(3));
        op.row_level = one_in(4) ? 1 + below(2) : 0;
        op.dst = nest(4, 0x7F0 + static_cast<std::int32_t>(below(0x30)));
        op.src = nest(6, static_cast<std::int32_t>(below(0x100)));
        if (one_in(3))
            op.src.base =
                static_cast<std::int32_t>(narrow_words) - 1 - static_cast<std::int32_t>(below(40));
        if (one_in(4)) {
            op.src.rotate_size = 1 + static_cast<std::int32_t>(below(9));
            op.src.rotate_level = below(3);
        }
        if (one_in(4)) crop(op.src);
        // Words for as many rows, or nearly so.
        if (one_in(2)) op.src.count[0] = static_cast<std::uint32_t>(op.dst.visits());
        if (one_in(2)) op.dst.rotate_size = 1 + static_cast<std::int32_t>(below(20));
        op.dst.rotate_level = below(3);
        if (one_in(3)) crop(op.dst);
        op.written = {!one_in(4), static_cast<std::uint8_t>(below(3))};
        op.waits.count = static_cast<std::uint8_t>(below(3));
        op.waits.least_level = 8;
        for (unsigned w = 0; w < op.waits.count; ++w) {
            op.waits.all[w] = {
                .counter = static_cast<std::uint8_t>(one_in(4) ? rows_written : w),
                .level = static_cast<std::uint8_t>(one_in(6) ? 0 : 1 + below(2)),
                .enabled = true,
                .destination = one_in(2),
                .start = static_cast<std::int32_t>(below(3)) - 1,
                .step = static_cast<std::int32_t>(below(2)),
            };
            op.waits.least_level = std::min(op.waits.least_level, op.waits.all[w].level);
        }
        return op;
    }

    void fill(Tile& tile) {
        for (auto& byte : tile.memory.narrow) byte = static_cast<std::uint8_t>(random_());
        for (auto& row : tile.memory.wide) row.fill(static_cast<std::uint8_t>(random_()));
        for (std::size_t row = 0; row < wide_rows; ++row) tile.memory.full.empty(row);
        for (std::size_t row = 0; row < wide_rows; ++row)
            if (one_in(8)) tile.memory.full.fill(row, RowOwner::ring_b);
    }

    unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
    bool one_in(unsigned n) { return below(n) == 0; }

  private:
    /// To fewer visits of a pass, or to more.
    void crop(Nest& nest) {
        nest.crop_level = 1 + below(2);
        nest.crop_count = 1 + below(nest.count[0] + 5);
    }
    Nest nest(unsigned dimensions, std::int32_t base) {
        Nest nest;
        nest.base = base;
        nest.dimensions = dimensions;
        for (unsigned d = 0; d < 3; ++d) {
            nest.count[d] = 1 + below(d == 0 ? 9 : 4);
            nest.step[d] = static_cast<std::int32_t>(below(5)) - 1;
        }
        return nest;
    }

    std::mt19937_64 random_;
};

/// What came of turns of so many visits, until the engine waited, stopped or was done.
struct Turns {
    Outcome outcome = Outcome::moved;
    Blocked blocked;
    std::string fault;
    unsigned count = 0;

    Turns(NarrowToWideEngine& engine, Tile& tile, std::uint64_t budget) {
        NoFabric fabric;
        for (; outcome == Outcome::moved; ++count) {
            Work work{.tile = tile, .fabric = fabric, .budget = budget, .blocked = &blocked};
            outcome = engine.advance(work);
            if (work.fault) fault = work.fault->what;
        }
    }
};

TEST(RandomRowsOfWords, AreTheSameOneByOneAndManyAtATime) {
    const auto slow_tile = std::make_unique<Tile>(), fast_tile = std::make_unique<Tile>();
    unsigned done = 0, faults = 0, full = 0, stops = 0, slow_turns = 0, fast_turns = 0;
    for (unsigned seed = 0; seed < 1500; ++seed) {
        SCOPED_TRACE(seed);
        RandomRows random(seed);
        const NarrowToWide op = random.op();
        random.fill(*slow_tile);
        slow_tile->counters = {};
        *fast_tile = *slow_tile;
        NarrowToWideEngine slow(op, op.src.base), fast(op, op.src.base);
        for (bool goes_on = true; goes_on; ++stops) {
            const std::uint64_t budget = random.one_in(2) ? ~std::uint64_t{0} : random.below(9);
            const Turns one_by_one(slow, *slow_tile, 0), many(fast, *fast_tile, budget);
            ASSERT_EQ(one_by_one.outcome, many.outcome);
            ASSERT_EQ(one_by_one.fault, many.fault);
            ASSERT_EQ(one_by_one.blocked.on, many.blocked.on);
            ASSERT_EQ(one_by_one.blocked.row, many.blocked.row);
            ASSERT_EQ(one_by_one.blocked.unmet.counter, many.blocked.unmet.counter);
            ASSERT_EQ(one_by_one.blocked.unmet.needed, many.blocked.unmet.needed);
            ASSERT_TRUE(same_memory(*slow_tile, *fast_tile));
            done += many.outcome == Outcome::done ? 1 : 0;
            faults += many.fault.empty() ? 0 : 1;
            full += many.blocked.on == Blocked::On::row_full ? 1 : 0;
            slow_turns += one_by_one.count;
            fast_turns += many.count;
            goes_on = many.outcome == Outcome::waiting && many.fault.empty();
            const unsigned counter = random.one_in(6) ? rows_written : random.below(2);
            for (auto* tile : {slow_tile.get(), fast_tile.get()}) {
                tile->counters.count(counter);
                tile->memory.full.empty(many.blocked.row);
            }
        }
    }
    EXPECT_GT(done, 300U);
    EXPECT_GT(faults, 100U);
    EXPECT_GT(full, 100U);
    EXPECT_GT(stops, 2000U);
    EXPECT_LT(2 * fast_turns, slow_turns);
}

}  // namespace
}  // namespace reef::edgetpu::sim
