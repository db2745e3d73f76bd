// Whole compiled files on the simulated chip, against the plain models on the CPU floor.
#include "reef/edgetpu/simulator.h"

#include <gtest/gtest.h>

#include <random>

#include "reef/base/file.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/model/tflite.h"
#include "support/cpu_executor.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

model::Model load(const std::filesystem::path& path) {
    auto bytes = read_file(path.string());
    EXPECT_TRUE(bytes) << path;
    auto model = model::read_tflite(*bytes);
    EXPECT_TRUE(model) << (model ? "" : model.error().message());
    return std::move(*model);
}

struct Case {
    std::string name;
    int most_difference;  ///< of any output byte: rounding differs from TFLite's
    double least_equal;   ///< share of output bytes that are equal
};

void PrintTo(const Case& tested, std::ostream* out) {
    *out << tested.name;
}

std::vector<std::byte> random_input(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

class CompiledTemplate : public testing::TestWithParam<Case> {
  protected:
    using Outputs = std::vector<std::vector<std::byte>>;

    static Outputs on_chip(SimulatedPackage& package, Simulator& chip,
                           const std::vector<Bytes>& inputs) {
        Outputs outputs;
        std::vector<MutableBytes> views;
        for (const auto& layer : package.executable().outputs)
            outputs.emplace_back(tensor_bytes(layer).value());
        for (auto& output : outputs) views.emplace_back(output);
        const auto status = package.run(chip, inputs, views);
        EXPECT_TRUE(status) << (status ? "" : status.error().message());
        return outputs;
    }
};

TEST_P(CompiledTemplate, GivesThePlainModelsOutputs) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const auto plain = load(folder / (GetParam().name + ".tflite"));
    const auto compiled = load(folder / (GetParam().name + "_edgetpu.tflite"));
    const auto packages = packages_of(compiled);
    ASSERT_TRUE(packages);
    auto package = SimulatedPackage::prepare(packages->front().package);
    ASSERT_TRUE(package) << package.error().message();
    auto cpu = test::on_cpu(plain, {});
    ASSERT_TRUE(cpu) << cpu.error().message();
    Simulator chip;
    for (const unsigned seed : {1U, 2U, 3U}) {
        const auto input = random_input(cpu->input(0).size(), seed);
        std::ranges::copy(input, cpu->input(0).begin());
        ASSERT_TRUE(cpu->run());
        const auto got = on_chip(*package, chip, {Bytes(input)});
        ASSERT_EQ(got.size(), 1U);
        const Bytes want = cpu->output(0);
        ASSERT_EQ(got[0].size(), want.size());
        std::size_t equal = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            const int difference =
                std::abs(std::to_integer<int>(got[0][i]) - std::to_integer<int>(want[i]));
            equal += difference == 0;
            ASSERT_LE(std::min(difference, 256 - difference), GetParam().most_difference)
                << "byte " << i << ", seed " << seed;
        }
        EXPECT_GE(static_cast<double>(equal),
                  GetParam().least_equal * static_cast<double>(want.size()));
    }
}

TEST_P(CompiledTemplate, GivesTheSameBytesInEveryOrderOfTheEngines) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled =
        load(shared / "data/edgetpu/templates" / (GetParam().name + "_edgetpu.tflite"));
    const auto packages = packages_of(compiled);
    ASSERT_TRUE(packages);
    auto package = SimulatedPackage::prepare(packages->front().package);
    ASSERT_TRUE(package) << package.error().message();
    const auto input = random_input(tensor_bytes(package->executable().inputs[0]).value(), 7);
    Simulator first;
    const auto want = on_chip(*package, first, {Bytes(input)});
    Simulator other({.random_seed = 11});
    EXPECT_EQ(on_chip(*package, other, {Bytes(input)}), want);
}

std::vector<std::byte> run_once(const std::filesystem::path& path, Simulator& chip) {
    const auto compiled = load(path);
    const auto packages = packages_of(compiled);
    EXPECT_TRUE(packages);
    auto package = SimulatedPackage::prepare(packages->front().package);
    EXPECT_TRUE(package) << package.error().message();
    const auto input = random_input(tensor_bytes(package->executable().inputs[0]).value(), 3);
    std::vector<std::byte> output(tensor_bytes(package->executable().outputs[0]).value());
    const std::vector<Bytes> inputs = {input};
    const std::vector<MutableBytes> outputs = {output};
    const auto status = package->run(chip, inputs, outputs);
    EXPECT_TRUE(status) << (status ? "" : status.error().message());
    return output;
}

// Packages come, evict each other's parameters and go; the chip keeps nothing of theirs.
TEST(Simulator, PackagesTakeTurnsOnAChip) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    Simulator shared_chip;
    for (const char* name : {"dense_256", "bright_16x16", "gabor_64x64_p4", "dense_256",
                             "bright_16x16", "color_red_64x64", "color_green_64x64"}) {
        const auto path = folder / (std::string(name) + "_edgetpu.tflite");
        Simulator own_chip;
        EXPECT_EQ(run_once(path, shared_chip), run_once(path, own_chip)) << name;
    }
}

#ifdef REEF_LARGE_PROGRAMS
// One token, the same rows: what the first put there is not what it finds after the second.
TEST(Simulator, PartsOfAModelForTwoChipsTakeTurnsOnOne) {
    REEF_SHARED_OR_SKIP(shared);
    Simulator chip;
    std::vector<SimulatedPackage> parts;
    for (const char* number : {"0", "1"}) {
        const auto model = load(shared / "data/models" /
                                ("ssd_mobilenet_v1_coco_quant_postprocess_segment_" +
                                 std::string(number) + "_of_2_edgetpu.tflite"));
        const auto packages = packages_of(model);
        ASSERT_TRUE(packages);
        auto part = SimulatedPackage::prepare(packages->front().package);
        ASSERT_TRUE(part) << part.error().message();
        parts.push_back(std::move(*part));
    }
    std::vector<std::vector<std::vector<std::byte>>> first_runs;
    for (int round = 0; round < 2; ++round)
        for (std::size_t i = 0; i < parts.size(); ++i) {
            std::vector<std::vector<std::byte>> inputs, outputs;
            for (const auto& layer : parts[i].executable().inputs)
                inputs.push_back(random_input(tensor_bytes(layer).value(), 5));
            for (const auto& layer : parts[i].executable().outputs)
                outputs.emplace_back(tensor_bytes(layer).value());
            const std::vector<Bytes> in(inputs.begin(), inputs.end());
            const std::vector<MutableBytes> out(outputs.begin(), outputs.end());
            const auto status = parts[i].run(chip, in, out);
            ASSERT_TRUE(status) << status.error().message();
            if (round == 0)
                first_runs.push_back(outputs);
            else
                EXPECT_TRUE(outputs == first_runs[i]) << "part " << i;
        }
}
#endif

INSTANTIATE_TEST_SUITE_P(Templates, CompiledTemplate,
                         testing::Values(Case{"dense_256", 1, 0.9}, Case{"dense_1024", 1, 0.9},
                                         Case{"looming_64x64_3x3", 0, 1},
                                         Case{"gabor_64x64_7k_4o_2s", 1, 0.9},
                                         Case{"gabor_64x64_p4", 1, 0.9}, Case{"bright_16x16", 0, 1},
                                         Case{"bright_64x64", 0, 1}, Case{"color_red_64x64", 0, 1},
                                         Case{"color_green_64x64", 0, 1},
                                         Case{"color_white_64x64", 0, 1}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace reef::edgetpu
