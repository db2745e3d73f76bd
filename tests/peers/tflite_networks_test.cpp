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
#include "support/shared_data.h"
#include "with_tflite.h"

namespace reef::peers {
namespace {

/// Where Reef differs from TFLite 2.9 on purpose (docs/exactness.md): it knows one scale of
/// FULLY_CONNECTED's weights.
bool differs_on_purpose(const model::Subgraph& graph) {
    return std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
        if (op.code.builtin != model::Op::fully_connected) return false;
        const auto& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
        return weights.quantization && weights.quantization->per_channel();
    });
}

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
    EXPECT_EQ(alike->farthest, 0) << path << ": steps apart";
    if (alike->relative)
        EXPECT_LE(*alike->relative, most_relative) << path;
    else
        // Sums of float32 in another order choose another index where two are nearly the same.
        EXPECT_GE(*alike->equal, path.ends_with(":float32") ? 0.9999 : 1) << path;
    std::cout << fmt::format("{}: {:.2f} % of outputs equal, float32 {:.1e} of the largest apart\n",
                             name_of_network(path), 100 * *alike->equal,
                             alike->relative.value_or(0));
}

/// The reference data's plain models, each folder's by their names.
std::vector<std::string> plain_models() {
    std::vector<std::string> found;
    for (const char* folder : {"models", "edgetpu/silicon", "edgetpu/templates", "edgetpu/wild"})
        for (const auto& path : test::shared_files(std::string("data/") + folder, ".tflite"))
            if (!path.string().ends_with("edgetpu.tflite")) found.push_back(path.string());
    return found;
}

class TfliteNetworks : public WithTflite {};

TEST_F(TfliteNetworks, ReferenceDataGivesTheSameOutputs) {
    REEF_SHARED_OR_SKIP(shared);
    const auto models = plain_models();
    ASSERT_FALSE(models.empty()) << shared;
    std::size_t left_out = 0;
    for (const std::string& path : models) {
        const auto network = load_network(path);
        ASSERT_TRUE(network) << path << ": " << network.error().message();
        if (differs_on_purpose(network->model.subgraphs[0]))
            ++left_out;
        else
            expect_alike(path);
    }
    std::cout << fmt::format("{} networks, {} left out as different on purpose\n", models.size(),
                             left_out);
    EXPECT_GT(models.size(), 4 * left_out);
}

class TfliteShapes : public WithTflite, public testing::WithParamInterface<std::string> {};

TEST_P(TfliteShapes, GiveTheSameOutputs) {
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
