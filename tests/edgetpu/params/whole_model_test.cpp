// The blobs of every compiled model of the reference data whose plain source is there too.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>

#include "edgetpu/params/pairs.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

CompiledParameters open(const test::CompiledPair& pair) {
    return CompiledParameters::open(model::load_tflite(pair.plain).value(),
                                    model::load_tflite(pair.compiled).value())
        .value();
}

/// Layers that lie before one of an earlier operator in the same blob.
std::size_t out_of_order(const CompiledParameters& opened) {
    std::size_t count = 0;
    const PlacedPart* before = nullptr;
    for (const PlacedPart& after : opened.placement().placed) {
        if (opened.parts()[after.part].kind != PartKind::layer) continue;
        if (before != nullptr && before->range.blob == after.range.blob &&
            after.part < before->part)
            ++count;
        before = &after;
    }
    return count;
}

std::vector<test::CompiledPair> all_pairs() {
    auto all = test::compiled_pairs();
    for (auto& pair : test::wild_pairs()) all.push_back(std::move(pair));
    return all;
}

class WholeModel : public testing::TestWithParam<test::CompiledPair> {};

TEST_P(WholeModel, IsThePlainModelsByteForByte) {
    const CompiledParameters opened = open(GetParam());
    const Placement& placement = opened.placement();
    for (const std::size_t missing : placement.missing)
        ADD_FAILURE() << "missing " << opened.parts()[missing].name;
    for (const BlobRange& range : placement.unexplained)
        ADD_FAILURE() << range.size_bytes << " bytes unexplained at " << range.offset << " of "
                      << opened.blobs()[range.blob].name;
    for (const PlacedPart& placed : placement.placed)
        EXPECT_EQ(placed.differing, 0U) << opened.parts()[placed.part].name;
    EXPECT_TRUE(placement.complete());
    std::size_t bytes = 0;
    for (const auto& blob : opened.blobs()) bytes += blob.bytes.size();
    fmt::print("{}: {} parts, {} bytes\n", GetParam().name, placement.placed.size(), bytes);
}

std::string test_name(const testing::TestParamInfo<test::CompiledPair>& info) {
    std::string name = info.param.name;
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WholeModel);
INSTANTIATE_TEST_SUITE_P(Pairs, WholeModel, testing::ValuesIn(all_pairs()), test_name);

TEST(WholeModels, AreAllThere) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data"));
    EXPECT_EQ(test::compiled_pairs().size(), 18U);
    EXPECT_EQ(test::wild_pairs().size(), 12U);
}

/// Where several heads follow one layer, the compiler does not keep the order of the operators.
TEST(WholeModels, KeepTheOrderOfTheOperatorsButForHeads) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data"));
    const std::map<std::string, std::size_t> exchanged = {
        {"posenet_mobilenet_v1_075_353_481_16_quant_decoder", 1},
        {"movenet_single_pose_lightning_ptq", 3},
    };
    for (const test::CompiledPair& pair : test::compiled_pairs()) {
        SCOPED_TRACE(pair.name);
        const auto exchanges = exchanged.find(pair.name);
        EXPECT_EQ(out_of_order(open(pair)), exchanges == exchanged.end() ? 0U : exchanges->second);
    }
}

/// The scalar core computes one's softmax without a table, the tensor engines the other's with one.
TEST(WholeModels, HaveATableForASoftmaxWhereTheProgramUsesOne) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data"));
    std::map<std::string, std::size_t> tables;
    for (const test::CompiledPair& pair : all_pairs()) {
        const CompiledParameters opened = open(pair);
        for (const PlacedPart& placed : opened.placement().placed)
            if (opened.parts()[placed.part].kind == PartKind::softmax_table)
                tables[pair.name] = placed.range.size_bytes;
    }
    EXPECT_EQ(tables.at("mobilenet_v1_0.25_128_quant"), 48256U);
    EXPECT_FALSE(tables.contains("rt10__mobilenet_v1_0.25_128_quant"));
}

/// Without its table, a program that uses one is not complete.
TEST(WholeModels, MissATableThatTheProgramUses) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data"));
    const auto pairs = test::compiled_pairs();
    const auto pair =
        std::ranges::find(pairs, "mobilenet_v1_0.25_128_quant", &test::CompiledPair::name);
    ASSERT_NE(pair, pairs.end());
    const CompiledParameters opened = open(*pair);
    auto compiled = model::load_tflite(pair->compiled).value();
    auto packages = packages_of(compiled).value();
    ASSERT_EQ(packages.size(), 1U);
    for (const PlacedPart& placed : opened.placement().placed) {
        if (opened.parts()[placed.part].kind != PartKind::softmax_table) continue;
        const auto& blob = opened.blobs()[placed.range.blob];
        std::vector<std::byte> changed = blob.bytes;
        changed[placed.range.offset] ^= std::byte{1};
        packages[0].package.executables[blob.executable].parameters = SharedBytes::copy_of(changed);
    }
    auto& graph = compiled.subgraphs[packages[0].subgraph];
    ASSERT_TRUE(replace_package(graph.operators[packages[0].index], packages[0].package));
    const auto again =
        CompiledParameters::open(model::load_tflite(pair->plain).value(), std::move(compiled));
    ASSERT_TRUE(again);
    ASSERT_EQ(again->placement().missing.size(), 1U);
    EXPECT_EQ(again->parts()[again->placement().missing[0]].kind, PartKind::softmax_table);
    EXPECT_FALSE(again->placement().complete());
}

/// Models compiled together may cache the line of 1.0 behind a table that is streamed. No file of
/// the reference data does; one is made here, whose bytes alone are looked at.
TEST(WholeModels, FindTheLineOfATableApartFromIt) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data"));
    const auto pairs = test::compiled_pairs();
    const auto pair =
        std::ranges::find(pairs, "mobilenet_v1_0.25_128_quant", &test::CompiledPair::name);
    ASSERT_NE(pair, pairs.end());
    const CompiledParameters opened = open(*pair);
    const auto is_table = [&](const PlacedPart& placed) {
        return opened.parts()[placed.part].kind == PartKind::softmax_table;
    };
    const auto table = std::ranges::find_if(opened.placement().placed, is_table);
    ASSERT_NE(table, opened.placement().placed.end());
    constexpr std::size_t line = 64;
    const BlobRange& range = table->range;
    std::vector<std::byte> without = opened.blobs()[range.blob].bytes;
    const auto end = without.begin() + static_cast<std::ptrdiff_t>(range.offset + range.size_bytes);
    std::vector<std::byte> apart(end - line, end);
    without.erase(end - line, end);

    auto compiled = model::load_tflite(pair->compiled).value();
    auto packages = packages_of(compiled).value();
    auto& executables = packages.at(0).package.executables;
    ASSERT_EQ(executables.size(), 2U);
    const std::size_t mine = opened.blobs()[range.blob].executable;
    auto& other = executables[1 - mine].parameters;
    const Bytes before = other.view();
    std::vector<std::byte> with(before.begin(), before.end());
    with.insert(with.end(), apart.begin(), apart.end());
    other = SharedBytes::copy_of(with);
    executables[mine].parameters = SharedBytes::copy_of(without);
    for (Executable& executable : executables) executable.dma_hints.reset();  // of other sizes
    auto& graph = compiled.subgraphs[packages[0].subgraph];
    const auto replaced = replace_package(graph.operators[packages[0].index], packages[0].package);
    ASSERT_TRUE(replaced) << replaced.error().message();

    const auto again =
        CompiledParameters::open(model::load_tflite(pair->plain).value(), std::move(compiled));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(again->placement().complete());
    EXPECT_EQ(again->parts().size(), opened.parts().size() + 1);
    EXPECT_EQ(again->parts().back().size_bytes, line);
}

}  // namespace
}  // namespace reef::edgetpu
