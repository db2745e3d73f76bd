// The fast engine against the plain one on random instructions: equal memories wherever they wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "edgetpu/sim/tile/blend_engine.h"
#include "edgetpu/sim/tile/fast_tensor_engine.h"
#include "edgetpu/sim/tile/reduction_engine.h"
#include "edgetpu/sim/tile/requantise.h"
#include "no_fabric.h"
#include "same_memory.h"

namespace reef::edgetpu::sim {
namespace {

/// Random tensor instructions whose loops look like those of convolutions, or nearly so.
class RandomTensor {
  public:
    explicit RandomTensor(unsigned seed) : random_(seed) {}

    TensorOp op() {
        TensorOp op;
        set_form(op);
        set_loops(op);
        op.lanes = 4 * below(17);
        op.lanes = std::max(op.lanes, 4U);
        op.last_lanes = one_in(3) ? 4 * (1 + below(op.lanes / 4)) : op.lanes;
        op.out_16bit = one_in(6);
        op.acc_internal = !one_in(4);
        op.bias = one_in(2);
        op.lane_scale = one_in(3);
        op.scale = std::ldexp(1.0F, -static_cast<int>(below(20)));
        op.clamp_min = -1000;
        op.clamp_max = one_in(4) ? 100.0F : 70000.0F;
        op.start_value = one_in(3) ? static_cast<std::int32_t>(below(2000)) - 1000 : 0;
        op.out_zero = static_cast<std::int32_t>(below(256));
        op.table = one_in(5);
        op.table_normalised = op.table && one_in(3);
        op.table_odd = op.table && !op.table_normalised && one_in(3);
        set_nests(op);
        set_events(op);
        return op;
    }

    /// A blend of two by two taps, as known programs have them.
    TensorOp blend() {
        TensorOp op;
        set_resize(op);
        set_loops(op);
        op.loops.count = {2, 2, 1 + below(9), 1 + below(9), 1, 1 + below(3), 1, 1};
        op.loops.dimensions = 8;
        op.reduction_mask = 0b11;
        op.reduction_steps = one_in(2) ? 4 : 0;
        op.lanes = op.last_lanes = 1 + below(4);
        op.acc_internal = true;
        op.scale = std::ldexp(1.0F, -static_cast<int>(12 + below(4)));
        op.clamp_max = 255;
        op.resize.x.level = 2;
        op.resize.y.level = 3;
        set_nests(op);
        op.in.rotate_size = op.par.rotate_size = 0;
        op.par.count = op.loops.count;
        set_events(op);
        op.parameters = op.partial_sums = {};
        return op;
    }

    /// Largest values and sums of parameters, as known programs have them, or nearly so.
    TensorOp reduction() {
        TensorOp op;
        op.kind = one_in(2) ? TensorKind::max : TensorKind::sum;
        op.par_16bit = one_in(2);
        op.single = !op.par_16bit && one_in(3);
        op.in_zero = static_cast<std::int32_t>(below(256));
        op.par_zero = static_cast<std::int32_t>(below(op.par_16bit ? 65536 : 256));
        op.start_value = static_cast<std::int32_t>(below(2000)) - 1000;
        op.lanes = op.last_lanes = 1 + below(lane_count);
        op.acc_internal = true;
        op.scale = std::ldexp(1.0F, -static_cast<int>(below(16)));
        op.clamp_min = -1000;
        op.clamp_max = 70000;
        op.out_zero = static_cast<std::int32_t>(below(256));
        op.out_16bit = one_in(2);
        op.table = one_in(3);
        op.table_normalised = op.table && one_in(2);
        op.table_odd = op.table && !op.table_normalised && one_in(2);
        set_loops(op);
        if (one_in(2)) {
            op.loops.count = {1 + below(4), 1 + below(30), 1, 1, 1, 1, 1, 1};
            op.reduction_steps = 0;
            op.reduction_mask = 0b11;
            op.loops.crop_level = below(3);
            op.loops.crop_count = 1 + below(op.loops.count[0]);
        }
        set_nests(op);
        if (one_in(6)) {
            op.par.crop_level = 1 + below(2);
            op.par.crop_count = 1 + below(2 * op.par.count[0]);
        }
        if (one_in(12)) op.out.base = static_cast<std::int32_t>(narrow_bytes - 4 * below(4));
        op.acc = empty();
        op.acc.count[0] = static_cast<std::uint32_t>(op.loops.visits());
        set_events(op);
        return op;
    }

    /// Polynomials over the arguments that these scales give, and beyond.
    Table table() {
        Table table;
        for (auto& segment : table.coefficients)
            for (unsigned power = 0; power < segment.size(); ++power)
                segment[power] = std::ldexp(static_cast<float>(below(4001)) - 2000.0F,
                                            -4 * static_cast<int>(power));
        float at = -100;
        for (auto& limit : table.breaks) limit = at += static_cast<float>(below(60));
        return table;
    }

    void fill(Tile& tile) {
        for (std::size_t i = 0; i + 8 <= tile.memory.narrow.size(); i += 8)
            put(&tile.memory.narrow[i]);
        for (auto& row : tile.memory.wide)
            for (std::size_t i = 0; i < row_bytes; i += 8) put(&row[i]);
        for (std::size_t row = 0; row < wide_rows; ++row)
            tile.memory.full.fill(row, RowOwner::ring_b);
        for (unsigned row = 0; row < 16; ++row)
            for (unsigned lane = 0; lane < lane_count; ++lane)
                word(&tile.memory.wide[zero_row + row][4 * lane], below(256));
        if (one_in(8)) word(&tile.memory.wide[zero_row + below(4)][0], 70000);
        for (unsigned i = 0; i < 2 * lane_count; ++i) {
            const float scale = one_in(50) ? std::nanf("") : std::ldexp(1.0F, -int(below(24)));
            std::memcpy(&tile.memory.scaling[4 * i], &scale, 4);
            word(&tile.memory.scaling[2 * row_bytes + 4 * i],
                 static_cast<std::uint32_t>(below(1U << 18U)) - (1U << 17U));
        }
        if (one_in(10)) word(&tile.memory.scaling[2 * row_bytes + 4 * below(128)], 0x7FFFFFF0);
    }

    unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
    bool one_in(unsigned n) { return below(n) == 0; }

  private:
    static constexpr unsigned zero_row = 0x700;

    void put(std::uint8_t* at) {
        const std::uint64_t value = random_();
        std::memcpy(at, &value, sizeof value);
    }
    static void word(std::uint8_t* at, std::uint32_t value) { std::memcpy(at, &value, 4); }

    /// Without those in the middle, few of random numbers, some or most do not fit 16 bits any
    /// more.
    std::int32_t zero_of_halfwords() {
        constexpr std::int32_t middle = 32768;
        if (one_in(2)) return middle;
        const auto near = static_cast<std::int32_t>(below(200)) - 100;
        return one_in(2) ? middle + near : static_cast<std::int32_t>(below(65536));
    }

    void set_form(TensorOp& op) {
        const unsigned form = below(10);
        op.par_16bit = form == 0;
        op.single = form == 1 || form == 2;
        op.in_16bit = form == 3;
        if (form == 4) op.kind = one_in(2) ? TensorKind::max : TensorKind::sum;
        if (form == 5 && one_in(2)) set_resize(op);
        op.in_zero = static_cast<std::int32_t>(below(256));
        op.par_zero = op.par_16bit ? zero_of_halfwords() : static_cast<std::int32_t>(below(256));
        op.par_zero_rows = !op.par_16bit && one_in(3);
        op.zero_row_first = zero_row;
        op.zero_row_step = 1;
        op.zero_row_last = zero_row + static_cast<std::int32_t>(below(4));
    }

    void set_resize(TensorOp& op) {
        op.kind = TensorKind::resize;
        op.resize = {.x = {.level = below(4), .phase = below(4), .step = 1 + below(8)},
                     .y = {.level = below(4), .phase = below(4), .step = 1 + below(8)},
                     .pixel_stride = 4,
                     .row_stride = 4 * static_cast<std::int32_t>(1 + below(64))};
    }

    static Nest empty() {
        Nest nest;
        nest.dimensions = 8;
        nest.count.fill(1);
        return nest;
    }

    // Reduction, positions, perhaps a second reduction, and groups.
    void set_loops(TensorOp& op) {
        op.loops = empty();
        const unsigned dimensions = 1 + below(4);
        for (unsigned d = 0; d < dimensions; ++d) op.loops.count[d] = 1 + below(d == 1 ? 70 : 9);
        op.group_level = below(dimensions + 1);
        switch (below(4)) {
            case 0:
                op.reduction_mask = 0b0001;
                break;
            case 1:
                op.reduction_mask = 0b0101;
                break;
            case 2:
                op.reduction_mask = 0b0011;
                break;
            default:
                op.reduction_steps = op.loops.count[0];
                break;
        }
    }

    // A nest over the same digits with these distances.
    static Nest walk(const Nest& loops, std::int32_t base,
                     const std::array<std::int32_t, Nest::most_dimensions>& distance) {
        Nest nest = loops;
        nest.base = base;
        std::int32_t way = 0;
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            nest.step[d] = distance[d] - way;
            way += static_cast<std::int32_t>(nest.count[d] - 1) * distance[d];
        }
        return nest;
    }

    void set_nests(TensorOp& op) {
        const auto reduces = [&](unsigned d) {
            return op.reduction_steps != 0 ? d == 0 : (op.reduction_mask >> d & 1U) != 0;
        };
        std::array<std::int32_t, Nest::most_dimensions> in{};
        std::array<std::int32_t, Nest::most_dimensions> par{};
        std::array<std::int32_t, Nest::most_dimensions> acc{};
        for (unsigned d = 0; d < 8; ++d) {
            const bool grouped = d >= op.group_level;
            in[d] = d == 0 ? static_cast<std::int32_t>(op.elements())
                           : static_cast<std::int32_t>(below(64)) - 16;
            if (reduces(d) || grouped || one_in(20))
                par[d] = 4 * static_cast<std::int32_t>(below(8));
            if (op.single && one_in(2)) par[d] += static_cast<std::int32_t>(below(4));
            if (!reduces(d)) acc[d] = 4;
        }
        op.in = walk(op.loops, 0x10000, in);
        op.par = walk(op.loops, 0x400, par);
        op.acc = walk(op.loops, 0x1F80, acc);
        if (one_in(4)) {
            op.par.rotate_level = below(5);
            op.par.rotate_size = 36;
        }
        if (one_in(6)) {
            op.in.rotate_level = 1 + below(4);
            op.in.rotate_size = 384;
        }
        op.out = empty();
        op.out.dimensions = 8;
        op.out.base = one_in(6) ? 0x10000 : 0x100;
        const unsigned width = op.out_16bit ? 2 : 1;
        op.out.count[0] = one_in(5) ? 3 : (op.lanes * width + 3) / 4;
        op.out.step[0] = one_in(6) ? 8 : 4;
        op.out.count[1] = 1 + below(9);
        op.out.step[1] = 4 + static_cast<std::int32_t>(below(3)) * 4;
        op.out.count[2] = 2000;
        op.out.step[2] = 4;
        if (op.kind == TensorKind::mac && one_in(4)) set_place(op, reduces);
        if (one_in(6)) {
            op.out.crop_level = 1;
            op.out.crop_count = 1 + below(op.out.count[0]);
        }
    }

    /// Words of results that go where one of the inputs is, or near.
    void set_place(TensorOp& op, auto&& reduces) {
        std::array<std::int32_t, Nest::most_dimensions> in{};
        std::array<std::int32_t, Nest::most_dimensions> out{};
        std::int32_t apart = 4;
        std::array<unsigned, Nest::most_dimensions> order{0, 1, 2, 3, 4, 5, 6, 7};
        if (one_in(2)) std::swap(order[1], order[2]);
        for (const unsigned d : order) {
            in[d] = reduces(d) ? static_cast<std::int32_t>(below(3)) * 2 : apart;
            if (reduces(d)) continue;
            out[d] = apart;
            apart *= static_cast<std::int32_t>(op.loops.count[d] + below(2));
        }
        // From behind, too: the walk's base is then its end.
        const bool all = one_in(3), some = one_in(3);
        for (unsigned d = 0; d < op.loops.dimensions; ++d)
            if (!reduces(d) && (all || (some && one_in(2)))) in[d] = out[d] = -in[d];
        op.lanes = op.last_lanes = 1 + below(op.out_16bit ? 2 : 4);
        op.in = walk(op.loops, 0x10000, in);
        Nest words = op.loops;
        for (unsigned d = 0; d < words.dimensions; ++d)
            if (reduces(d)) words.count[d] = 1;
        op.out = walk(words, 0x10000 + 4 * (static_cast<std::int32_t>(below(5)) - 2), out);
    }

    void set_events(TensorOp& op) {
        const auto signal = [&] { return Signal{!one_in(3), static_cast<std::uint8_t>(below(6))}; };
        op.avdata = signal();
        op.parameters = signal();
        op.partial_sums = signal();
        op.waits.count = static_cast<std::uint8_t>(below(3));
        for (unsigned w = 0; w < op.waits.count; ++w)
            op.waits.all[w] = {
                .counter = static_cast<std::uint8_t>(w),
                .level = static_cast<std::uint8_t>(one_in(10) ? 0 : 1 + below(4)),
                .enabled = true,
                .destination = one_in(5),
                .start = static_cast<std::int32_t>(below(3)),
                .step = static_cast<std::int32_t>(below(3)),
            };
    }

    std::mt19937_64 random_;
};

/// 3 + x below 1, x squared from there on.
Table half_of_a_function() {
    Table table;
    table.coefficients.fill({0, 0, 1, 0, 0});
    table.coefficients[0] = {3, 1, 0, 0, 0};
    table.breaks.fill(1);
    return table;
}

TEST(FunctionTables, AnOddOneIsAppliedToMagnitudes) {
    const Table table = half_of_a_function();
    TensorOp op;
    op.table = true;
    EXPECT_EQ(apply_table(table, -0.5F, op), 2.5F);
    op.table_odd = true;
    for (const float x : {0.25F, 0.5F, 1.0F, 3.0F})
        EXPECT_EQ(apply_table(table, -x, op), -apply_table(table, x, op)) << x;
    EXPECT_EQ(apply_table(table, -3, op), -9);
    EXPECT_EQ(apply_table(table, 0, op), 3);
}

/// Memories, outcomes, counters and faults after each turn, with the same events between turns.
void run_both(auto& plain, auto& fast, Tile& plain_tile, Tile& fast_tile, TensorScratch& scratch,
              RandomTensor& random, unsigned& stops) {
    NoFabric fabric;
    for (bool done = false; !done; ++stops) {
        Blocked plain_blocked, fast_blocked;
        Work plain_work{.tile = plain_tile,
                        .fabric = fabric,
                        .budget = ~std::uint64_t{0},
                        .blocked = &plain_blocked};
        Work fast_work{.tile = fast_tile,
                       .fabric = fabric,
                       .scratch = &scratch,
                       .budget = ~std::uint64_t{0},
                       .blocked = &fast_blocked};
        const Outcome outcome = plain.advance(plain_work);
        ASSERT_EQ(fast.advance(fast_work), outcome);
        ASSERT_TRUE(same_memory(plain_tile, fast_tile));
        ASSERT_EQ(plain_work.fault == nullptr, fast_work.fault == nullptr);
        if (plain_work.fault) {
            ASSERT_EQ(fast_work.fault->what, plain_work.fault->what);
            ASSERT_EQ(fast_work.fault->hint, plain_work.fault->hint);
            return;
        }
        done = outcome == Outcome::done;
        const unsigned counter = random.below(2);
        for (auto* tile : {&plain_tile, &fast_tile}) tile->counters.count(counter);
    }
}

TEST(RandomBlends, GiveTheSameMemoriesWhereverTheyWait) {
    const auto plain_tile = std::make_unique<Tile>();
    const auto fast_tile = std::make_unique<Tile>();
    unsigned blends = 0;
    unsigned stops = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        RandomTensor random(seed);
        const TensorOp op = random.blend();
        const auto shape = shape_of(op);
        ASSERT_TRUE(shape);
        if (!plan_of(op, *shape).blends) continue;
        ++blends;
        plain_tile->counters = {};
        random.fill(*plain_tile);
        *fast_tile = *plain_tile;
        Sums sums(shape->live_positions);
        TensorScratch scratch;
        TensorEngine plain(op, *shape, sums);
        BlendEngine fast(op);
        run_both(plain, fast, *plain_tile, *fast_tile, scratch, random, stops);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(blends, 100U);
    EXPECT_GT(stops, blends);
}

TEST(RandomReductions, GiveTheSameMemoriesWhereverTheyWait) {
    const auto plain_tile = std::make_unique<Tile>();
    const auto fast_tile = std::make_unique<Tile>();
    unsigned largest = 0, sums_of_parameters = 0, cropped = 0, rotating = 0, stops = 0;
    for (unsigned seed = 0; seed < 600; ++seed) {
        SCOPED_TRACE(seed);
        RandomTensor random(seed);
        const TensorOp op = random.reduction();
        const auto shape = shape_of(op);
        if (!shape || !plan_of(op, *shape).reduces) continue;
        ++(op.kind == TensorKind::max ? largest : sums_of_parameters);
        cropped += op.loops.crop_level != 0 && op.loops.crop_count != op.loops.count[0] ? 1 : 0;
        rotating += op.par.rotates() ? 1 : 0;
        plain_tile->counters = {};
        plain_tile->table.reset();
        if (!random.one_in(8)) plain_tile->table = random.table();
        random.fill(*plain_tile);
        *fast_tile = *plain_tile;
        Sums sums(shape->live_positions);
        TensorScratch scratch;
        TensorEngine plain(op, *shape, sums);
        ReductionEngine fast(op, *shape);
        run_both(plain, fast, *plain_tile, *fast_tile, scratch, random, stops);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(largest, 100U);
    EXPECT_GT(sums_of_parameters, 100U);
    EXPECT_GT(cropped, 30U);
    EXPECT_GT(rotating, 30U);
    EXPECT_GT(stops, 300U);
}

// Its rows would not fit those that are given back together.
TEST(Reductions, OfPassesThatACropMakesLongerAreForThePlainEngine) {
    for (const std::uint32_t crop_count : {64U, 65U, 2000U}) {
        TensorOp op;
        op.kind = TensorKind::sum;
        op.lanes = op.last_lanes = 4;
        op.acc_internal = true;
        op.reduction_mask = 1;
        for (Nest* nest : {&op.loops, &op.in, &op.out, &op.par, &op.acc}) nest->dimensions = 8;
        op.loops.count[0] = op.acc.count[0] = 2000;
        op.par.count = {64, 40, 1, 1, 1, 1, 1, 1};
        op.par.rotate_level = 1;
        op.par.rotate_size = 4;
        op.par.crop_level = 1;
        op.par.crop_count = crop_count;
        const auto shape = shape_of(op);
        ASSERT_TRUE(shape);
        EXPECT_EQ(plan_of(op, *shape).reduces, crop_count <= op.par.count[0]) << crop_count;
    }
}

/// Precondition: plan.fast.
void run_on_both(const TensorOp& op, const TensorShape& shape, const TensorPlan& plan,
                 RandomTensor& random, Tile& plain_tile, Tile& fast_tile, unsigned& stops) {
    plain_tile.counters = {};
    plain_tile.table = random.table();
    random.fill(plain_tile);
    fast_tile = plain_tile;
    Sums sums(shape.live_positions);
    TensorState state;
    state.reserve(shape.live_positions, plan.in_parts ? shape.live_positions * plan.lanes : 0);
    TensorScratch scratch;
    ScratchSizes sizes;
    sizes.include(plan);
    scratch.reserve(sizes);
    TensorEngine plain(op, shape, sums);
    FastTensorEngine fast(op, shape, plan, state);
    run_both(plain, fast, plain_tile, fast_tile, scratch, random, stops);
}

// Each position reads what one before it has written, a word or two further up.
TEST(DescendingWalks, ReadTheResultsBehindThem) {
    if (tensor_kernels() == nullptr) GTEST_SKIP() << "no vectors on this machine";
    const auto plain_tile = std::make_unique<Tile>();
    const auto fast_tile = std::make_unique<Tile>();
    unsigned tried = 0;
    unsigned stops = 0;
    for (unsigned seed = 0; seed < 8000; ++seed) {
        RandomTensor random(seed);
        const TensorOp op = random.op();
        const std::int32_t above = op.in.base - op.out.base;
        const bool down = std::ranges::any_of(op.out.step, [](std::int32_t s) { return s < 0; });
        const auto shape = shape_of(op);
        if (op.kind != TensorKind::mac || !down || above < 4 || above > 8 || !shape) continue;
        const TensorPlan plan = plan_of(op, *shape);
        if (!plan.fast) continue;
        ++tried;
        SCOPED_TRACE(seed);
        run_on_both(op, *shape, plan, random, *plain_tile, *fast_tile, stops);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(tried, 20U);
}

TEST(RandomTensorInstructions, GiveTheSameMemoriesWhereverTheyWait) {
    if (tensor_kernels() == nullptr) GTEST_SKIP() << "no vectors on this machine";
    const auto plain_tile = std::make_unique<Tile>();
    const auto fast_tile = std::make_unique<Tile>();
    unsigned fast_ones = 0;
    unsigned fast_tables = 0;
    unsigned resizes = 0;
    unsigned stops = 0;
    constexpr unsigned trials = 500;
    for (unsigned seed = 0; seed < trials; ++seed) {
        RandomTensor random(seed);
        const TensorOp op = random.op();
        const auto shape = shape_of(op);
        if (!shape) continue;
        const TensorPlan plan = plan_of(op, *shape);
        if (op.kind == TensorKind::resize) {
            ++resizes;
            EXPECT_FALSE(plan.fast) << "the fast engine knows no blend, seed " << seed;
        }
        if (!plan.fast) continue;
        ++fast_ones;
        fast_tables += op.table ? 1 : 0;
        SCOPED_TRACE(seed);
        run_on_both(op, *shape, plan, random, *plain_tile, *fast_tile, stops);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(fast_ones, trials / 4);
    EXPECT_GT(fast_tables, fast_ones / 10);
    EXPECT_GT(resizes, trials / 50);
    EXPECT_GT(stops, 2 * fast_ones);
}

}  // namespace
}  // namespace reef::edgetpu::sim
