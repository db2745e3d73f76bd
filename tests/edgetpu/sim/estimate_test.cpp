// The estimate of time: a clock for every engine, both programs in the picture, and the figures of
// docs/simulator.md.
#include "reef/edgetpu/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "copy_program.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

std::vector<EngineSpan> of_engine(const std::vector<EngineSpan>& spans, std::string_view engine) {
    std::vector<EngineSpan> out;
    std::ranges::copy_if(spans, std::back_inserter(out),
                         [&](const EngineSpan& span) { return span.engine == engine; });
    return out;
}

Result<Package> package_of(const std::filesystem::path& model) {
    const auto bytes = REEF_TRY(read_file(model.string()));
    const auto read = REEF_TRY(model::read_tflite(bytes));
    auto packages = REEF_TRY(packages_of(read));
    return std::move(packages.at(0).package);
}

TEST(Estimate, InfeedHasAClockAndALane) {
    std::vector<EngineSpan> spans;
    const auto done = estimate(copy_package(copy_program()), &spans);
    ASSERT_TRUE(done) << done.error().message();
    const auto infeeds = of_engine(spans, "INFEED");
    ASSERT_EQ(infeeds.size(), 2U);
    for (const auto& span : infeeds) {
        EXPECT_EQ(span.tile, EngineSpan::scalar_core);
        EXPECT_EQ(span.instruction, "infeed");
        EXPECT_FALSE(span.caching);
    }
    // One engine, one after the other: 16 cycles to start, and 16 bytes per cycle.
    std::set<std::uint64_t> cycles = {infeeds[0].cycles, infeeds[1].cycles};
    EXPECT_EQ(cycles, (std::set<std::uint64_t>{16 + 64 / 16, 16 + 256 / 16}));
    EXPECT_GE(infeeds[1].begin, infeeds[0].begin + infeeds[0].cycles);
}

TEST(Estimate, CyclesOfEachInstructionAreThoseOfItsSpans) {
    std::vector<EngineSpan> spans;
    const auto done = estimate(copy_package(copy_program()), &spans);
    ASSERT_TRUE(done) << done.error().message();
    const auto& rows = done->computing.instructions;
    for (const auto& row : rows) {
        std::uint64_t all = 0;
        std::map<unsigned, std::uint64_t> by_tile;
        for (const auto& span : spans) {
            if (span.instruction != row.instruction) continue;
            all += span.cycles;
            by_tile[span.tile] += span.cycles;
        }
        if (by_tile.empty()) continue;
        EXPECT_EQ(row.all_cycles, all) << row.instruction;
        EXPECT_EQ(row.busiest_cycles, std::ranges::max(by_tile | std::views::values))
            << row.instruction;
    }
    EXPECT_TRUE(std::ranges::is_sorted(rows, std::greater{}, &InstructionCycles::busiest_cycles));
    const auto infeed = std::ranges::find(rows, "infeed", &InstructionCycles::instruction);
    ASSERT_NE(infeed, rows.end());
    EXPECT_EQ(infeed->count, 2U);
    EXPECT_EQ(std::ranges::count(rows, "fence", &InstructionCycles::instruction), 1);
}

TEST(Estimate, TheProgramThatLoadsParametersComesFirst) {
    REEF_SHARED_OR_SKIP(shared);
    const auto package = package_of(shared / "data/edgetpu/templates/dense_256_edgetpu.tflite");
    ASSERT_TRUE(package) << package.error().message();
    std::vector<EngineSpan> spans;
    const auto once = estimate(*package, &spans);
    ASSERT_TRUE(once && once->caching);
    const std::size_t count = spans.size();
    std::uint64_t loaded = 0;
    std::uint64_t computing = ~std::uint64_t{0};
    for (const auto& span : spans) {
        if (span.caching)
            loaded = std::max(loaded, span.begin + span.cycles);
        else
            computing = std::min(computing, span.begin);
    }
    EXPECT_GT(loaded, 0U);
    EXPECT_GE(computing, loaded);
    EXPECT_FALSE(of_engine(spans, "INFEED").empty());
    EXPECT_FALSE(once->caching->instructions.empty());

    // A second package comes behind the first.
    ASSERT_TRUE(estimate(*package, &spans));
    ASSERT_EQ(spans.size(), 2 * count);
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_GE(spans[count + i].begin, spans[i].begin + loaded) << i;
}

TEST(Estimate, TwoPackagesAddUp) {
    const auto one = estimate(copy_package(copy_program()));
    ASSERT_TRUE(one) << one.error().message();
    auto sum = *one;
    sum += *one;
    EXPECT_DOUBLE_EQ(sum.first_seconds, 2 * one->first_seconds);
    EXPECT_EQ(sum.computing.cycles, 2 * one->computing.cycles);
    ASSERT_EQ(sum.computing.instructions.size(), one->computing.instructions.size());
    for (std::size_t i = 0; i < sum.computing.instructions.size(); ++i)
        EXPECT_EQ(sum.computing.instructions[i].count, 2 * one->computing.instructions[i].count);
    EXPECT_FALSE(sum.caching);
}

// The table in docs/simulator.md, to the digits that it has.
TEST(Estimate, FiguresAreThoseOfThePage) {
    REEF_SHARED_OR_SKIP(shared);
    struct Row {
        std::string path;
        double first_ms, cached_ms, unit;
    };
    const Row rows[] = {
        {"data/edgetpu/templates/dense_256_edgetpu.tflite", 0.49, 0.28, 0.01},
        {"data/edgetpu/templates/dense_1024_edgetpu.tflite", 3.61, 0.30, 0.01},
        {"data/models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite", 9.9, 7.5, 0.1},
        {"data/models/posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite", 9.6, 5.0,
         0.1},
    };
    for (const auto& row : rows) {
        const auto package = package_of(shared / row.path);
        ASSERT_TRUE(package) << package.error().message();
        const auto done = estimate(*package);
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_NEAR(done->first_seconds * 1e3, row.first_ms, row.unit / 2) << row.path;
        EXPECT_NEAR(done->cached_seconds * 1e3, row.cached_ms, row.unit / 2) << row.path;
    }
}

}  // namespace
}  // namespace reef::edgetpu::sim
