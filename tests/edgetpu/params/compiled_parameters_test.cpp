// Weights of real compiled models: read, replaced, read again.
#include "reef/edgetpu/compiled_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "edgetpu/params/parameter_reader.h"
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

/// The weights of `opened`'s first layer as real numbers, all 0 but one.
NamedArrays one_real_weight(const CompiledParameters& opened, std::size_t index, float value) {
    const auto first = opened.get().value().front();
    std::vector<float> real(first.second.data.size(), 0.0F);
    real[index] = value;
    const auto bytes = std::as_bytes(std::span(real));
    return {
        {first.first, {ElementType::float32, first.second.shape, {bytes.begin(), bytes.end()}}}};
}

TEST(CompiledParameters, RefusesRealWeightsThatInt8DoesNotHold) {
    REEF_SHARED_OR_SKIP(shared);
    for (const std::string name : {"dense_256", "color_red_64x64", "gabor_64x64_p4"}) {
        SCOPED_TRACE(name);
        auto opened = open(shared / "data/edgetpu/templates", name);
        const auto before = opened.get().value();
        ASSERT_EQ(before.front().second.type, ElementType::int8);
        const auto& tensor = opened.plain()
                                 .subgraphs[0]
                                 .tensors[static_cast<std::size_t>(opened.parts()[0].weights)];
        const float scale = tensor.quantization->scale.front();
        const auto set = [&](float value) { return opened.set(one_real_weight(opened, 1, value)); };
        for (const float value : {NAN, INFINITY, -INFINITY, 128 * scale, -128 * scale}) {
            const auto status = set(value);
            ASSERT_FALSE(status) << value;
            EXPECT_EQ(status.error().cause, Cause::bad_argument);
            EXPECT_THAT(status.error().message(),
                        testing::AllOf(testing::HasSubstr(before.front().first),
                                       testing::HasSubstr("element 1")));
            EXPECT_EQ(opened.get().value(), before);
        }
        if (tensor.quantization->scale.size() > 1) continue;
        ASSERT_TRUE(set(127.4F * scale));
        EXPECT_EQ(opened.get().value().front().second.data[1], std::byte{127});
        ASSERT_TRUE(set(-127.4F * scale));
        EXPECT_EQ(opened.get().value().front().second.data[1], std::byte{0x81});
    }
}

TEST(CompiledParameters, RefusesSparseConstants) {
    REEF_SHARED_OR_SKIP(shared);
    for (const std::string name : {"dense_256", "color_red_64x64"}) {
        SCOPED_TRACE(name);
        const auto opened = open(shared / "data/edgetpu/templates", name);
        auto sparse = opened.plain();
        auto& weights =
            sparse.subgraphs[0].tensors[static_cast<std::size_t>(opened.parts()[0].weights)];
        weights.sparsity.emplace();
        const Bytes dense = sparse.constant(weights);
        weights.buffer = static_cast<std::uint32_t>(sparse.buffers.size());
        sparse.buffers.push_back(SharedBytes::copy_of(dense.first(1)));
        const auto refused = CompiledParameters::open(sparse, opened.compiled());
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().cause, Cause::unsupported);
        EXPECT_THAT(refused.error().message(), testing::HasSubstr("values in sparse form"));
    }
}

TEST(ParameterReader, RefusesAnotherNetworksInputs) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const std::array<std::string, 4> names = {"color_red_64x64", "bright_64x64", "dense_256",
                                              "dense_1024"};
    for (const auto& compiled : names)
        for (const auto& plain : names) {
            SCOPED_TRACE(compiled + " with " + plain);
            const auto opened = ParameterReader().open(open(folder, plain).plain(),
                                                       open(folder, compiled).compiled());
            EXPECT_EQ(opened.has_value(), compiled == plain);
            if (opened || compiled == plain) continue;
            EXPECT_EQ(opened.error().cause, Cause::bad_input);
            EXPECT_THAT(opened.error().message(), testing::HasSubstr("the compiled model takes"));
        }
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
