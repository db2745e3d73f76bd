#include <gmock/gmock.h>

#include "edgetpu/package/package_data.h"
#include "reef/base/file.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {
namespace {

TEST(ReadPackage, EveryCompiledFile) {
    REEF_SHARED_OR_SKIP(shared);
    const auto files = test::compiled_files();
    ASSERT_EQ(files.size(), 20U) << shared;
    for (const auto& path : files) {
        SCOPED_TRACE(path.filename().string());
        const auto found = test::packages_in(path);
        ASSERT_EQ(found.size(), 1U);
        const Package& package = found[0].package;
        EXPECT_TRUE(package.not_preserved.empty());
        EXPECT_TRUE(package.signature.empty());
        EXPECT_FALSE(package.compiler_version.empty());
        ASSERT_EQ(package.executables.size(), 2U);
        EXPECT_EQ(package.executables[0].type, ExecutableType::execution_only);
        EXPECT_EQ(package.executables[1].type, ExecutableType::parameter_caching);
        for (const Executable& executable : package.executables) {
            EXPECT_EQ(executable.chip, "beagle");
            EXPECT_EQ(executable.batch_size, 1);
            EXPECT_NE(executable.parameter_caching_token, 0U);
            EXPECT_EQ(executable.parameter_caching_token,
                      package.executables[0].parameter_caching_token);
            ASSERT_FALSE(executable.bitstreams.empty());
            for (const InstructionBitstream& stream : executable.bitstreams) {
                EXPECT_TRUE(decode(stream.instructions.view())) << "not a program";
            }
        }
        EXPECT_FALSE(package.executables[0].inputs.empty());
        for (const Layer& layer : package.executables[0].outputs) {
            ASSERT_NE(layer.layout(), nullptr) << layer.name;
            EXPECT_EQ(layer.layout()->y_to_tile.size(), static_cast<std::size_t>(layer.y_dim));
            EXPECT_EQ(layer.layout()->x_to_tile.size(), static_cast<std::size_t>(layer.x_dim));
        }
    }
}

TEST(ReadPackage, KnownValues) {
    REEF_SHARED_OR_SKIP(shared);
    const auto found =
        test::packages_in(shared / "data/models/mobilenet_v1_0.25_128_quant_edgetpu.tflite");
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].place, "subgraph 0: operator 0 edgetpu-custom-op");
    const Package& package = found[0].package;
    EXPECT_EQ(package.min_runtime_version, 12);
    const Executable* caching = package.find(ExecutableType::parameter_caching);
    const Executable* execution = package.find(ExecutableType::execution_only);
    ASSERT_TRUE(caching != nullptr && execution != nullptr);
    EXPECT_EQ(caching->parameters.size(), 566912U);
    EXPECT_TRUE(execution->parameters.empty());
    EXPECT_EQ(execution->parameter_caching_token, 0x6d146c3f97d6648cU);
    EXPECT_EQ(execution->bitstreams[0].instructions.size(), 170032U);
    EXPECT_EQ(execution->used_narrow_memory_bytes_per_tile, 8996);
    ASSERT_TRUE(execution->dma_hints);
    EXPECT_EQ(execution->dma_hints->hints.size(), 4U);
    EXPECT_TRUE(execution->dma_hints->fully_deterministic);
    const Layer* input = execution->find_input("input");
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(input->size_bytes, 128 * 128 * 3);
    EXPECT_TRUE(std::holds_alternative<InputLayer>(input->kind));
    ASSERT_TRUE(input->numerics);
    EXPECT_EQ(input->numerics->zero_point, 128);
    const Layer* output = execution->find_output("MobilenetV1/Predictions/Reshape_1");
    ASSERT_NE(output, nullptr);
    EXPECT_EQ(output->z_dim, 1001);
    EXPECT_EQ(output->size_bytes, 1008);
}

TEST(ReadPackage, ViewsLieInTheFile) {
    REEF_SHARED_OR_SKIP(shared);
    const auto path = shared / "data/models/mobilenet_v1_0.25_128_quant_edgetpu.tflite";
    const SharedBytes file = read_file(path.string()).value();
    const auto found = packages_of(model::read_tflite(file).value()).value();
    const Bytes parameters =
        found[0].package.find(ExecutableType::parameter_caching)->parameters.view();
    EXPECT_GE(parameters.data(), file.view().data());
    EXPECT_LE(parameters.data() + parameters.size(), file.view().data() + file.size());
}

TEST(ReadPackage, APlainModelHasNone) {
    REEF_SHARED_OR_SKIP(shared);
    EXPECT_TRUE(
        test::packages_in(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite").empty());
}

TEST(ReadPackage, RefusesOptionsWithoutAPackage) {
    model::Operator op;
    op.code.custom = std::string(custom_operator_name);
    const auto package = package_of(op);
    ASSERT_FALSE(package);
    EXPECT_THAT(package.error().message(), testing::HasSubstr("custom options"));
}

}  // namespace
}  // namespace reef::edgetpu
