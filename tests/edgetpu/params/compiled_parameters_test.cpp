// Weights of real compiled models: read, replaced, read again.
#include "reef/edgetpu/compiled_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

CompiledParameters open(const std::filesystem::path& folder, const std::string& name) {
    auto plain = model::load_tflite((folder / (name + ".tflite")).string()).value();
    auto compiled = model::load_tflite((folder / (name + "_edgetpu.tflite")).string()).value();
    return CompiledParameters::open(std::move(plain), std::move(compiled)).value();
}

TEST(CompiledParameters, GivesThePlainModelsTensors) {
    REEF_SHARED_OR_SKIP(shared);
    for (const std::string name :
         {"mobilenet_v1_0.25_128_quant", "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
          "movenet_single_pose_lightning_ptq", "keras_lstm_mnist_ptq"}) {
        SCOPED_TRACE(name);
        const auto opened = open(shared / "data/models", name);
        const auto arrays = opened.get();
        ASSERT_TRUE(arrays) << arrays.error().message();
        std::size_t compared = 0;
        for (const model::Tensor& tensor : opened.plain().subgraphs[0].tensors) {
            const auto found =
                std::ranges::find(*arrays, tensor.name, &NamedArrays::value_type::first);
            if (found == arrays->end()) continue;
            EXPECT_TRUE(std::ranges::equal(found->second.data, opened.plain().constant(tensor)))
                << tensor.name;
            ++compared;
        }
        EXPECT_GE(compared, static_cast<std::size_t>(std::ranges::count(
                                opened.parts(), PartKind::layer, &ParameterPart::kind)));
    }
}

TEST(CompiledParameters, KeepsTheModelWhenNothingChanges) {
    REEF_SHARED_OR_SKIP(shared);
    auto opened = open(shared / "data/models", "posenet_mobilenet_v1_075_353_481_16_quant_decoder");
    ASSERT_TRUE(opened.set(opened.get().value()));
    EXPECT_EQ(opened.model().value(), opened.compiled());
}

TEST(CompiledParameters, ReplacesWeightsAndTheToken) {
    REEF_SHARED_OR_SKIP(shared);
    auto opened = open(shared / "data/edgetpu/templates", "dense_256");
    auto arrays = opened.get().value();
    Array& weights = arrays[0].second;
    ASSERT_EQ(weights.type, ElementType::int8);
    std::ranges::reverse(weights.data);
    ASSERT_TRUE(opened.set({arrays[0]}));
    auto changed = opened.model().value();
    const auto old_token = opened.operators()[0].package.executables[0].parameter_caching_token;
    const auto package = packages_of(changed).value()[0].package;
    for (const Executable& executable : package.executables) {
        EXPECT_NE(executable.parameter_caching_token, old_token);
    }
    const auto again = CompiledParameters::open(opened.plain(), std::move(changed)).value();
    EXPECT_FALSE(again.placement().complete());
    EXPECT_TRUE(again.placement().unexplained.empty());
    EXPECT_EQ(again.get().value()[0].second, weights);
}

TEST(CompiledParameters, RoundsRealWeightsToTheModelsScales) {
    REEF_SHARED_OR_SKIP(shared);
    auto opened = open(shared / "data/edgetpu/templates", "dense_256");
    const auto before = opened.get().value();
    const auto& tensor =
        opened.plain().subgraphs[0].tensors[static_cast<std::size_t>(opened.parts()[0].weights)];
    const auto& scales = tensor.quantization->scale;
    std::vector<float> real(before[0].second.data.size());
    for (std::size_t i = 0; i < real.size(); ++i) {
        real[i] = static_cast<float>(static_cast<std::int8_t>(before[0].second.data[i])) *
                  scales[i / 256];
    }
    const auto bytes = std::as_bytes(std::span(real));
    const Array array{ElementType::float32, {256, 256}, {bytes.begin(), bytes.end()}};
    ASSERT_TRUE(opened.set({{before[0].first, array}}));
    EXPECT_EQ(opened.get().value(), before);
}

TEST(CompiledParameters, RefusesWithTheName) {
    REEF_SHARED_OR_SKIP(shared);
    auto opened = open(shared / "data/edgetpu/templates", "color_red_64x64");
    auto arrays = opened.get().value();
    EXPECT_EQ(opened.set({{"nothing", arrays[0].second}}).error().cause, Cause::not_found);
    Array wrong = arrays[0].second;
    wrong.shape.push_back(1);
    EXPECT_EQ(opened.set({{arrays[0].first, wrong}}).error().cause, Cause::bad_argument);
    for (auto& [name, array] : arrays) {
        if (array.type != ElementType::int32) continue;
        array.data[0] = std::byte{1};
        const auto status = opened.set({{name, array}});
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().message(), testing::HasSubstr("a bias"));
    }
    EXPECT_FALSE(CompiledParameters::open(opened.plain(), opened.plain()));
    EXPECT_FALSE(CompiledParameters::open(opened.compiled(), opened.compiled()));
}

}  // namespace
}  // namespace reef::edgetpu
