// Whole networks on Reef's CPU floor against TensorFlow Lite itself, with its own kernels: the
// plain models of the reference data, and those that are known by their shapes, with random
// weights.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>

#include "peers/known_shapes.h"
#include "peers/likeness.h"
#include "peers/networks.h"
#include "peers/random_input.h"
#include "peers/tflite_peer.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

Result<Likeness> compare(const std::string& path) {
    const auto [name, model] = REEF_TRY(load_network(path));
    auto ours =
        REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer()}, .threads = 1}));
    auto theirs = REEF_TRY(TflitePeer::create(model, TfliteKernels::builtin, 1));
    fill(ours);
    for (std::size_t i = 0; i < theirs.input_count(); ++i)
        std::ranges::copy(ours.input(i), theirs.input(i).begin());
    REEF_TRY(ours.run());
    REEF_CHECK(theirs.run());
    return likeness(ours, theirs.outputs());
}

void expect_alike(const std::string& path) {
    const auto alike = compare(path);
    ASSERT_TRUE(alike) << path << ": " << alike.error().message();
    ASSERT_TRUE(alike->equal) << path << ": no output is compared";
    if (alike->relative)
        EXPECT_LE(*alike->relative, most_relative) << path;
    else
        EXPECT_EQ(*alike->equal, 1) << path << ": " << alike->farthest << " steps apart";
    std::cout << fmt::format("{}: {:.2f} % of outputs equal, float32 {:.1e} of the largest apart\n",
                             name_of_network(path), 100 * *alike->equal,
                             alike->relative.value_or(0));
}

TEST(TfliteNetworks, ReferenceDataGivesTheSameOutputs) {
    if (const auto reason = why_no_tflite(); !reason.empty()) GTEST_SKIP() << reason;
    const auto models = known_models();
    if (models.empty()) GTEST_SKIP() << "REEF_SHARED names no reference data";
    for (const std::string& path : models) expect_alike(path);
}

class TfliteShapes : public testing::TestWithParam<std::string> {};

TEST_P(TfliteShapes, GiveTheSameOutputs) {
    if (const auto reason = why_no_tflite(); !reason.empty()) GTEST_SKIP() << reason;
    expect_alike(std::string(shape_prefix) + GetParam());
}

std::string shape_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::ranges::replace_if(
        name, [](char c) { return c == ':' || c == '.' || c == '-'; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Networks, TfliteShapes, testing::ValuesIn(known_shapes()), shape_name);

}  // namespace
}  // namespace reef::peers
