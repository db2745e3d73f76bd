// Segments of a pipeline, each a compiled model of its own, with the plain model of the whole.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "changed_weights.h"
#include "compiler/random_network.h"
#include "edgetpu/retarget/other_numbers.h"
#include "own_models.h"
#include "reef/chip/parameters.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/retarget.h"
#include "reef/model/builder.h"
#include "reef/model/part.h"
#include "reef/runtime/layer_dump.h"
#include "reef/runtime/registry.h"
#include "support/compiled_session.h"
#include "support/drawn_seeds.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using model::Model;
using model::OperatorRange;

struct SegmentTally {
    std::size_t segments = 0, tensors = 0, retargeted = 0, refused = 0, layers = 0;
    [[nodiscard]] std::string text() const {
        return fmt::format("{} segments, {} tensors, {} retargeted and {} refused, {} layers",
                           segments, tensors, retargeted, refused, layers);
    }
};

/// As with the part alone.
void expect_weights_by_the_whole(const Model& whole, const Model& part, const Model& compiled,
                                 std::size_t first, SegmentTally& tally) {
    const auto& reader = *runtime::Registry::of_process().part<chip::ParameterReader>("edgetpu");
    auto by_whole = reader.open(whole, compiled), by_part = reader.open(part, compiled);
    ASSERT_TRUE(by_whole) << by_whole.error().message();
    ASSERT_TRUE(by_part) << by_part.error().message();
    EXPECT_TRUE((*by_whole)->account().complete());
    // What nobody reads is no part of it.
    EXPECT_GE((*by_whole)->account().first_operator.value(), first);
    EXPECT_EQ((*by_part)->account().first_operator, std::nullopt);
    auto arrays = (*by_whole)->get();
    ASSERT_TRUE(arrays) << arrays.error().message();
    EXPECT_TRUE(*arrays == (*by_part)->get().value());
    tally.tensors += arrays->size();
    for (auto& [name, array] : *arrays)
        if (array.type != ElementType::float32) array.data.front() ^= std::byte{1};
    ASSERT_TRUE((*by_whole)->set(*arrays));
    ASSERT_TRUE((*by_part)->set(*arrays));
    EXPECT_TRUE((*by_whole)->model().value() == (*by_part)->model().value());
}

/// To the same target, of which it computes the same part.
void expect_retargeted_by_the_whole(const Model& whole, const Model& compiled, OperatorRange range,
                                    unsigned seed, SegmentTally& tally) {
    const Model target = test::with_other_numbers(whole, seed, test::Change::slight);
    const Model target_part = model::part_of(target, range).value().model;
    for (const bool with_source : {true, false}) {
        SCOPED_TRACE(with_source ? "with the source" : "without the source");
        const auto result =
            with_source ? retarget(compiled, whole, target, {}) : retarget(compiled, target, {});
        ++(result ? tally.retargeted : tally.refused);
        if (result) {
            test::expect_computes(target_part, result->model, seed);
        } else {
            EXPECT_EQ(result.error().cause, Cause::unsupported) << result.error().message();
        }
    }
}

/// Layers go by the numbers that the tensors have in the whole.
void expect_layers_of_the_whole(const Model& whole, const Model& part, const Model& compiled,
                                unsigned seed, SegmentTally& tally) {
    const auto plain = runtime::plain_model_of(compiled, whole);
    ASSERT_TRUE(plain) << plain.error().message();
    EXPECT_EQ(plain->subgraphs.front().tensors, whole.subgraphs.front().tensors);
    EXPECT_EQ(plain->subgraphs.front().operators.size(), part.subgraphs.front().operators.size());
    auto sessions = test::open_compared(*plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    test::draw_inputs(sessions->chip, sessions->cpu, seed);
    const auto ran = sessions->cpu.run();
    ASSERT_TRUE(ran) << ran.error().message();
    ASSERT_TRUE(sessions->chip.run());
    const auto dump = runtime::dump_layers(compiled, sessions->chip, &*plain);
    ASSERT_TRUE(dump) << dump.error().message();
    for (const runtime::DumpedLayer& one : dump->layers) {
        if (!one.layer.problem.empty() || !one.match || !one.match->comparable) continue;
        ++tally.layers;
        EXPECT_EQ(one.plain_name,
                  whole.subgraphs.front().tensors[std::size_t(one.match->tensor)].name);
        EXPECT_TRUE(std::ranges::equal(one.tensor.data, sessions->cpu.tensor(one.match->tensor)))
            << one.plain_op;
    }
}

void expect_segment_is_read(const Model& whole, OperatorRange range, unsigned seed,
                            SegmentTally& tally) {
    SCOPED_TRACE(fmt::format("{} operators from {}", range.count, range.first));
    const auto part = model::part_of(whole, range);
    ASSERT_TRUE(part) << part.error().message();
    const auto compiled = compile(part->model, test::options_in_turn(seed));
    if (!compiled || packages_of(compiled->model).value().empty()) return;
    ++tally.segments;
    expect_weights_by_the_whole(whole, part->model, compiled->model, range.first, tally);
    expect_retargeted_by_the_whole(whole, compiled->model, range, seed, tally);
    expect_layers_of_the_whole(whole, part->model, compiled->model, seed, tally);
}

TEST(OwnSegments, OfRandomNetworksAreReadWithTheWhole) {
    const auto seeds = test::drawn_seeds(40);
    SegmentTally tally;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed) {
        SCOPED_TRACE(seed);
        const Model whole =
            seed % 2 == 0 ? test::random_network(seed) : test::random_network_of_small_images(seed);
        const std::size_t operators = whole.subgraphs.front().operators.size();
        if (operators < 2) continue;
        const std::size_t border = 1 + seed % (operators - 1);
        expect_segment_is_read(whole, {0, border}, seed, tally);
        expect_segment_is_read(whole, {border, operators - border}, seed, tally);
    }
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.segments, seeds.count);
    EXPECT_GT(tally.retargeted, 2 * tally.refused);
    EXPECT_GT(tally.layers, tally.segments);
}

class SegmentsOf : public testing::TestWithParam<const char*> {};

TEST_P(SegmentsOf, AModelAreReadWithTheWhole) {
    REEF_SHARED_OR_SKIP(shared);
    const Model whole =
        test::load_model(shared / "data/models" / (std::string(GetParam()) + ".tflite"));
    const std::size_t operators = whole.subgraphs.front().operators.size();
    SegmentTally tally;
    constexpr std::size_t count = 3;
    for (std::size_t s = 0; s < count; ++s) {
        const std::size_t first = operators * s / count, end = operators * (s + 1) / count;
        expect_segment_is_read(whole, {first, end - first}, 5, tally);
    }
    fmt::print("{}\n", tally.text());
    EXPECT_EQ(tally.segments, count);
    EXPECT_EQ(tally.refused, 0U);
    EXPECT_GT(tally.layers, operators / 3);
}

INSTANTIATE_TEST_SUITE_P(Models, SegmentsOf,
                         testing::Values("mobilenet_v1_0.25_128_quant",
                                         "tf2_mobilenet_v2_1.0_224_ptq",
                                         "movenet_single_pose_lightning_ptq",
                                         "deeplabv3_mnv2_dm05_pascal_quant"),
                         [](const auto& of) {
                             std::string name = of.param;
                             std::ranges::replace(name, '.', '_');
                             return name;
                         });

TEST(OwnSegments, ThatReadMoreThanTheirInputsAreRefusedByName) {
    const Model whole = test::random_network(2);
    const std::size_t operators = whole.subgraphs.front().operators.size();
    ASSERT_GT(operators, 2U);
    auto compiled = compile(model::part_of(whole, {0, operators - 1}).value().model, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    auto& graph = compiled->model.subgraphs.front();
    const auto& last = whole.subgraphs.front().tensors[static_cast<std::size_t>(
        whole.subgraphs.front().operators.back().outputs.front())];
    graph.tensors[static_cast<std::size_t>(graph.inputs.front())].name = last.name;
    for (const auto& refused :
         {retarget(compiled->model, whole, whole, {}), retarget(compiled->model, whole, {})}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().cause, Cause::unsupported);
        EXPECT_THAT(refused.error().message(), testing::HasSubstr("none of the part's inputs"));
    }
}

/// FULLY_CONNECTED of 16 to 16, from one tensor to the next of each pair, with weights of its own.
Model dense_layers(const std::vector<std::pair<std::string, std::string>>& pairs,
                   std::initializer_list<std::string_view> outputs) {
    constexpr std::int32_t units = 16;
    const auto numbers = model::per_tensor(0.05F, 3);
    model::Builder builder("layers");
    std::map<std::string, model::TensorIndex, std::less<>> made{
        {"in", builder.input("in", ElementType::int8, {1, units}, numbers)}};
    std::mt19937 random(5);
    for (const auto& [from, to] : pairs) {
        std::array<std::int8_t, std::size_t{units} * units> weights{};
        for (auto& w : weights) w = static_cast<std::int8_t>(random() % 255 - 127);
        const auto constant =
            builder.constant<std::int8_t>(fmt::format("weights{}", made.size()), ElementType::int8,
                                          {units, units}, weights, model::per_tensor(0.02F, 0));
        const auto out = builder.tensor(to, ElementType::int8, {1, units}, numbers);
        builder.add(model::Op::fully_connected, {made.at(from), constant, model::absent_tensor},
                    {out}, model::FullyConnectedOptions{});
        made.emplace(to, out);
    }
    for (const auto name : outputs) builder.output(made.find(name)->second);
    return builder.finish().value();
}

/// Each layer of `whole` as a segment, retargeted by the names alone: which fit. Those that do
/// compute the target's tensor of that name.
std::vector<bool> fitting_by_names(const Model& whole, const Model& target) {
    std::vector<bool> fit;
    for (std::size_t i = 0; i < whole.subgraphs.front().operators.size(); ++i) {
        const auto compiled = compile(model::part_of(whole, {i, 1}).value().model, {});
        EXPECT_TRUE(compiled) << compiled.error().message();
        const auto made = retarget(compiled->model, target, {});
        fit.push_back(made.has_value());
        if (!made) continue;
        auto part = model::part_between(target, *model::ends_in(target, compiled->model)).value();
        model::prune(part);
        test::expect_computes(part, made->model, 1);
    }
    return fit;
}

TEST(OwnSegments, OfATargetWithExchangedNamesFitTogetherOrNotAtAll) {
    const Model chain = dense_layers({{"in", "a"}, {"a", "b"}, {"b", "c"}, {"c", "d"}}, {"d"});
    EXPECT_EQ(fitting_by_names(
                  chain, dense_layers({{"in", "a"}, {"a", "c"}, {"c", "b"}, {"b", "d"}}, {"d"})),
              (std::vector{true, false, false, false}));
    const Model branches = dense_layers({{"in", "a"}, {"in", "b"}}, {"a", "b"});
    EXPECT_EQ(fitting_by_names(branches, dense_layers({{"in", "b"}, {"in", "a"}}, {"a", "b"})),
              (std::vector{true, true}));
}

}  // namespace
}  // namespace reef::edgetpu
