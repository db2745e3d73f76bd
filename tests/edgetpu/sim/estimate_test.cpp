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
    // One engine, one after the other: 16 cycles to start, and 10.8 bytes per cycle.
    std::set<std::uint64_t> cycles = {infeeds[0].cycles, infeeds[1].cycles};
    EXPECT_EQ(cycles, (std::set<std::uint64_t>{16 + 5, 16 + 23}));
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

std::uint64_t count_of(const ExecutableEstimate& estimate, std::string_view name) {
    const auto row =
        std::ranges::find(estimate.instructions, name, &InstructionCycles::instruction);
    return row == estimate.instructions.end() ? 0 : row->count;
}

TEST(Estimate, WhatALoopRepeatsCountsAsOftenAsItRuns) {
    const auto plain = estimate(copy_package(copy_program()));
    const auto repeated = estimate(copy_package(
        with(copy_program(), "\nhalt", "\nloop count=5 body=2\nbundle\nbundle\nhalt")));
    ASSERT_TRUE(plain && repeated) << (repeated ? "" : repeated.error().message());
    EXPECT_FALSE(repeated->computing.counted_once);
    EXPECT_EQ(count_of(repeated->computing, "bundle"),
              count_of(plain->computing, "bundle") + 2 * 5);
    EXPECT_EQ(count_of(repeated->computing, "loop"), 1U);
}

TEST(Estimate, AProgramThatDoesNotEndIsCountedOnce) {
    // To itself, and to the first instruction behind start: the second issues all the others again.
    for (const std::string offset : {"-1", "-0x61"}) {
        SCOPED_TRACE(offset);
        std::vector<EngineSpan> spans;
        const auto plain = estimate(copy_package(copy_program()), &spans);
        const auto count = spans.size();
        const auto endless =
            estimate(copy_package(with(copy_program(), "\nhalt",
                                       "\nbranch offset=" + offset + " unknown_33=1\nhalt")),
                     &spans);
        ASSERT_TRUE(plain && endless) << (endless ? "" : endless.error().message());
        EXPECT_TRUE(endless->computing.counted_once);
        EXPECT_EQ(count_of(endless->computing, "branch"), 1U);
        EXPECT_EQ(count_of(endless->computing, "infeed"), count_of(plain->computing, "infeed"));
        EXPECT_EQ(spans.size(), 2 * count);
    }
}

// The vendor's program of an LSTM loops over 28 steps; 15 branches stand in it. The figures are
// those of docs/edgetpu-compiler.md.
TEST(Estimate, TheVendorsLoopOfAnLstmIsFollowed) {
    REEF_SHARED_OR_SKIP(shared);
    const auto package = package_of(shared / "data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    ASSERT_TRUE(package) << package.error().message();
    const auto done = estimate(*package);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_FALSE(done->computing.counted_once);
    EXPECT_GT(count_of(done->computing, "branch"), 28U);
    EXPECT_NEAR(static_cast<double>(done->computing.cycles), 38e3, 500);
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

Result<PackageEstimate> estimate_of(const std::filesystem::path& model) {
    return estimate(REEF_TRY(package_of(model)));
}

const std::string templates = "data/edgetpu/templates/", models = "data/models/",
                  wild = "data/edgetpu/wild/";

// Published times over USB 3, of cached inferences.
TEST(Estimate, IsWithin15PercentOfPublishedTimes) {
    REEF_SHARED_OR_SKIP(shared);
    struct Row {
        std::string path;
        std::vector<double> maximum_ms, throttled_ms;
    };
    const Row rows[] = {
        {templates + "dense_256_edgetpu.tflite", {0.21}, {0.28}},
        {templates + "dense_1024_edgetpu.tflite", {}, {0.29}},
        {models + "mobilenet_v1_0.25_128_quant_edgetpu.tflite", {0.9}, {}},
        {models + "mobilenet_v1_0.5_160_quant_edgetpu.tflite", {1.335}, {}},
        {wild + "rt10__mobilenet_v1_1.0_224_quant_embedding_extractor_edgetpu.tflite",
         {2.17, 2.34, 2.4},
         {}},
        {models + "posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite", {5.8}, {}},
    };
    for (const auto& row : rows) {
        const auto done = estimate_of(shared / row.path);
        ASSERT_TRUE(done) << done.error().message();
        for (const double ms : row.maximum_ms)
            EXPECT_NEAR(done->cached_seconds * 1e3 / ms, 1, 0.15) << row.path;
        for (const double ms : row.throttled_ms)
            EXPECT_NEAR(done->throttled_seconds * 1e3 / ms, 1, 0.15) << row.path;
    }
}

// The tables in docs/simulator.md, to the digits that they have.
TEST(Estimate, FiguresAreThoseOfThePage) {
    REEF_SHARED_OR_SKIP(shared);
    struct Row {
        std::string path;
        double first_ms, cached_ms, throttled_ms, unit;
    };
    const Row rows[] = {
        {templates + "dense_256_edgetpu.tflite", 0.40, 0.24, 0.24, 0.01},
        {templates + "dense_1024_edgetpu.tflite", 2.78, 0.26, 0.28, 0.01},
        {models + "mobilenet_v1_0.25_128_quant_edgetpu.tflite", 2.34, 0.97, 1.36, 0.01},
        {models + "mobilenet_v1_0.5_160_quant_edgetpu.tflite", 4.94, 1.42, 2.17, 0.01},
        {wild + "rt10__mobilenet_v1_1.0_224_quant_embedding_extractor_edgetpu.tflite", 10.3, 2.3,
         4.0, 0.1},
        {models + "posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite", 8.6, 5.2, 8.3,
         0.1},
        {models + "movenet_single_pose_lightning_ptq_edgetpu.tflite", 12.1, 5.3, 7.2, 0.1},
        {models + "deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite", 10.5, 8.7, 12.9, 0.1},
        {templates + "looming_64x64_3x3_edgetpu.tflite", 0.31, 0.31, 0.35, 0.01},
        {templates + "gabor_64x64_7k_4o_2s_edgetpu.tflite", 0.62, 0.61, 0.65, 0.01},
    };
    for (const auto& row : rows) {
        const auto done = estimate_of(shared / row.path);
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_NEAR(done->first_seconds * 1e3, row.first_ms, row.unit / 2) << row.path;
        EXPECT_NEAR(done->cached_seconds * 1e3, row.cached_ms, row.unit / 2) << row.path;
        EXPECT_NEAR(done->throttled_seconds * 1e3, row.throttled_ms, row.unit / 2) << row.path;
    }
}

}  // namespace
}  // namespace reef::edgetpu::sim
