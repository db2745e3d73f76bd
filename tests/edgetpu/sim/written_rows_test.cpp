// Rows that nothing of a program writes, from which ring messages are not copied.
#include "edgetpu/sim/program/written_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "machine_run.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

constexpr auto last_row = static_cast<std::int32_t>(wide_rows) - 1;

/// That many rows, one after the other.
Nest rows(std::int32_t first, std::uint32_t count) {
    Nest nest{.base = first, .dimensions = 4};
    nest.step[0] = 1;
    nest.count[0] = count;
    return nest;
}

bool is_kept(const WrittenRows& written, std::int32_t row) {
    return written.are_kept(rows(row, 1));
}

WrittenRows written_by(const Operation& operation) {
    WrittenRows written;
    written.include(operation);
    return written;
}

RingReceive receive(const Nest& dst) {
    RingReceive op;
    op.dst = dst;
    return op;
}

TEST(WrittenRows, AreWhatInstructionsReceiveAndCopy) {
    NarrowToWide copy;
    copy.dst = rows(200, 2);
    copy.dst.rotate_size = 16;
    copy.dst.rotate_level = 1;
    copy.dst.count[1] = 2;
    copy.dst.step[1] = -1;
    WrittenRows written = written_by(receive(rows(100, 3)));
    written.include(copy);
    // What lies between two buffers counts as written.
    for (const std::int32_t row : {100, 101, 102, 200, 201, 215, 216, 217})
        EXPECT_FALSE(is_kept(written, row)) << row;
    for (const std::int32_t row : {0, 99, 103, 199, 218, last_row})
        EXPECT_TRUE(is_kept(written, row)) << row;
    EXPECT_TRUE(written.are_kept(rows(103, 97)));
    EXPECT_FALSE(written.are_kept(rows(103, 98)));
    EXPECT_FALSE(written.are_kept(rows(99, 2)));
}

TEST(WrittenRows, AreHeadsOfGroups) {
    RingReceive op = receive(rows(50, 1));
    op.head = {.enabled = true, .level = 1, .base = 60, .count = 3, .last = 62, .rows = 1};
    const WrittenRows written = written_by(op);
    for (const std::int32_t row : {50, 60, 61, 62}) EXPECT_FALSE(is_kept(written, row)) << row;
    for (const std::int32_t row : {59, 63}) EXPECT_TRUE(is_kept(written, row)) << row;
    op.head.enabled = false;
    EXPECT_TRUE(is_kept(written_by(op), 61));
    op.head.enabled = true;
    op.head.last = 59;
    EXPECT_FALSE(is_kept(written_by(op), 7)) << "a range that never ends";
}

// Sums have addresses of quarter rows.
TEST(WrittenRows, AreSumsThatStayInWideMemory) {
    TensorOp op;
    op.acc_internal = false;
    op.acc = rows(400, 2);
    op.acc.step[0] = 4;
    const WrittenRows written = written_by(op);
    for (const std::int32_t row : {100, 101}) EXPECT_FALSE(is_kept(written, row)) << row;
    for (const std::int32_t row : {99, 102, 400}) EXPECT_TRUE(is_kept(written, row)) << row;
    op.acc_internal = true;
    EXPECT_TRUE(is_kept(written_by(op), 100));
}

TEST(WrittenRows, AreAllWhereAnInstructionLeavesTheMemory) {
    EXPECT_FALSE(is_kept(written_by(receive(rows(last_row, 2))), 0));
    EXPECT_FALSE(is_kept(written_by(receive(rows(-1, 1))), 0));
    Nest around = rows(5, 3);
    around.step[0] = std::numeric_limits<std::int32_t>::max();
    EXPECT_FALSE(is_kept(written_by(receive(around)), 0)) << "it wraps around to row 3";
    const WrittenRows none;
    EXPECT_TRUE(none.are_kept(rows(0, wide_rows)));
    EXPECT_FALSE(none.are_kept(rows(0, wide_rows + 1)));
    EXPECT_FALSE(none.are_kept(rows(-1, 2)));
    EXPECT_FALSE(none.are_kept(around));
}

// No engine visits a row that is not counted, whatever the nest.
TEST(WrittenRows, AreAllThatANestVisits) {
    std::mt19937 random(2);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(random() % bound); };
    unsigned inside = 0;
    for (unsigned turn = 0; turn < 2000; ++turn) {
        Nest nest{.base = static_cast<std::int32_t>(300 + below(1200)), .dimensions = 1 + below(4)};
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            nest.count[d] = 1 + below(5);
            nest.step[d] = static_cast<std::int32_t>(below(60)) - 30;
        }
        nest.rotate_level = below(3);
        nest.rotate_size = below(2) == 0 ? 0 : static_cast<std::int32_t>(below(64)) - 32;
        if (below(2) == 0) {
            nest.crop_level = 1 + below(4);
            nest.crop_dimension = nest.dimensions > 2 && nest.crop_level > 1 ? below(2) : 0;
            nest.crop_count = 1 + below(6);
        }
        const WrittenRows written = written_by(receive(nest));
        for (NestCursor at(nest); !at.done(); at.advance())
            ASSERT_FALSE(is_kept(written, at.address())) << "turn " << turn;
        inside += is_kept(written, 0) ? 1 : 0;
    }
    EXPECT_GT(inside, 1000U);
}

class Programs : public testing::TestWithParam<const char*> {};

// What an inference leaves of them is what was there before.
TEST_P(Programs, KeepRowsThatTheySend) {
    REEF_SHARED_OR_SKIP(shared);
    const auto path = shared / "data" / (GetParam() + std::string("_edgetpu.tflite"));
    auto programs = PackagePrograms::load(path);
    ASSERT_TRUE(programs) << programs.error().message();
    ASSERT_TRUE(programs->caching);
    Machine machine;
    programs->caching->host->begin_run();
    ASSERT_TRUE(machine.run(programs->caching->program, *programs->caching->host));
    std::vector<TileMemory> before;
    for (unsigned t = 0; t < tile_count; ++t) before.push_back(machine.tile(t).memory);
    programs->set_inputs(3);
    programs->computing.host->begin_run();
    ASSERT_TRUE(machine.run(programs->computing.program, *programs->computing.host));

    std::size_t kept = 0, others = 0;
    for (const Stream& stream : programs->computing.program.streams)
        for (const auto& instruction : stream.instructions) {
            const auto* send = std::get_if<RingSend>(&instruction.operation);
            if (send == nullptr) continue;
            ++(send->from_kept_rows ? kept : others);
            if (!send->from_kept_rows) continue;
            for (NestCursor at(send->src); !at.done(); at.advance())
                for (unsigned t = 0; t < tile_count; ++t) {
                    const auto row = static_cast<std::size_t>(at.address());
                    const TileMemory& after = machine.tile(t).memory;
                    ASSERT_EQ(after.wide[row], before[t].wide[row]) << "tile " << t << ' ' << row;
                    ASSERT_EQ(after.row_length[row], before[t].row_length[row]);
                }
        }
    EXPECT_GT(kept, 0U) << "of " << others;
    EXPECT_GT(others, 0U) << "of " << kept;
}

INSTANTIATE_TEST_SUITE_P(Models, Programs,
                         testing::Values("models/mobilenet_v1_0.25_128_quant",
                                         "models/mobilenet_v1_0.5_160_quant",
                                         "models/movenet_single_pose_lightning_ptq",
                                         "models/deeplabv3_mnv2_dm05_pascal_quant"),
                         [](const auto& tested) {
                             std::string name = tested.param;
                             name.erase(0, name.rfind('/') + 1);
                             std::ranges::replace(name, '.', '_');
                             return name;
                         });

}  // namespace
}  // namespace reef::edgetpu::sim
