// Compiled models in a session with a simulated Edge TPU, against the plain models on the CPU with
// the chip's arithmetic: every byte of every tensor that the compiled programs give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reef/edgetpu/numerics.h"
#include "reef/runtime/session.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::runtime {
namespace {

struct Pair {
    std::string plain;     ///< path below the reference data, without ".tflite"
    std::string compiled;  ///< the same of the compiled file
};

void PrintTo(const Pair& pair, std::ostream* out) {
    *out << pair.compiled.substr(pair.compiled.rfind('/') + 1);
}

class CompiledSession : public testing::TestWithParam<Pair> {};

TEST_P(CompiledSession, EqualsThePlainModelInTheChipsArithmetic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled = test::load_model(shared / (GetParam().compiled + ".tflite"));
    const auto plain = test::load_model(shared / (GetParam().plain + ".tflite"));
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    auto& [cpu, chip] = *sessions;
    for (const unsigned seed : {1U, 2U, 3U}) {
        test::draw_inputs(cpu, chip, seed);
        ASSERT_TRUE(cpu.run());
        const auto ran = chip.run();
        ASSERT_TRUE(ran) << ran.error().message();
        test::expect_equal_compiled_tensors(chip, cpu);
    }
}

Pair of_templates(const std::string& name) {
    const std::string path = "data/edgetpu/templates/" + name;
    return {path, path + "_edgetpu"};
}
Pair of_wild(const std::string& name) {
    const std::string path = "data/edgetpu/wild/" + name;
    return {path, path + "_edgetpu"};
}
Pair of_models(const std::string& name) {
    const std::string path = "data/models/" + name;
    return {path, path + "_edgetpu"};
}

INSTANTIATE_TEST_SUITE_P(
    Templates, CompiledSession,
    testing::Values(of_templates("dense_256"), of_templates("dense_1024"),
                    of_templates("looming_64x64_3x3"), of_templates("gabor_64x64_7k_4o_2s"),
                    of_templates("gabor_64x64_p4"), of_templates("bright_16x16"),
                    of_templates("bright_64x64"), of_templates("color_red_64x64"),
                    of_templates("color_green_64x64"), of_templates("color_white_64x64")));

// As users publish them: of other versions of the compiler and other people's exporters.
INSTANTIATE_TEST_SUITE_P(
    Wild, CompiledSession,
    testing::Values(
        of_wild("facemesh__face_detection_front_128_full_integer_quant"),
        of_wild("facemesh__face_landmark_192_full_integer_quant"),
        of_wild("libredge__gabor_128x128_7k_4o_2s"), of_wild("libredge__gabor_128x128_p4"),
        of_wild("micro__posenet_mobilenet_v1_075_353_481_quant_decoder"),
        of_wild("mot__yolov5nu_full_integer_quant"), of_wild("mot__yolov8n_full_integer_quant"),
        of_wild("mot__yolov10n_full_integer_quant"), of_wild("lite640__yolov8n_full_integer_quant"),
        of_wild("rt10__mobilenet_v1_0.25_128_quant"),
        of_wild("rt10__mobilenet_v1_1.0_224_quant_embedding_extractor"),
        of_wild("tcn__quantized_model")));

INSTANTIATE_TEST_SUITE_P(
    Models, CompiledSession,
    testing::Values(of_models("mobilenet_v1_0.25_128_quant"),
                    of_models("mobilenet_v1_0.5_160_quant"), of_models("split_concat"),
                    of_models("keras_lstm_mnist_ptq"),
                    of_models("deeplabv3_mnv2_dm05_pascal_quant"),
                    of_models("movenet_single_pose_lightning_ptq"),
                    of_models("posenet_mobilenet_v1_075_353_481_16_quant_decoder"),
                    Pair{"data/models/mobilenet_v1_0.25_128_quant",
                         "data/models/mobilenet_v1_0.25_128_quant_cocompiled_with_mobilenet_v1_0.5_"
                         "160_quant_edgetpu"}));

TEST(CompiledSession, ASecondRunGivesTheSameAgain) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string name = "mobilenet_v1_0.25_128_quant";
    for (const bool compiled : {false, true}) {
        const auto model = test::load_model(shared / "data/models" /
                                            (name + (compiled ? "_edgetpu.tflite" : ".tflite")));
        auto session = Session::open(model, {.devices = {compiled ? "edgetpu:sim" : "cpu"}});
        ASSERT_TRUE(session) << session.error().message();
        test::draw_picture(session->input(0), 7);
        const std::vector<std::byte> input(session->input(0).begin(), session->input(0).end());
        ASSERT_TRUE(session->run());
        const Bytes output = session->output(0);
        const std::vector<std::byte> first(output.begin(), output.end());
        ASSERT_TRUE(session->run());
        EXPECT_TRUE(std::ranges::equal(session->output(0), first));
        EXPECT_TRUE(std::ranges::equal(session->input(0), input));
    }
}

TEST(CompiledSession, PlacesOperatorsWithTheirReasons) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled =
        test::load_model(shared / "data/models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite");
    const auto session = Session::open(compiled, {.devices = {"edgetpu:sim"}});
    ASSERT_TRUE(session) << session.error().message();
    const auto& placements = session->placements();
    ASSERT_GT(placements.size(), 1U);
    EXPECT_EQ(placements[0].device, "edgetpu:sim");
    EXPECT_EQ(placements[0].reason, "compiled for the Edge TPU");
    EXPECT_EQ(placements.back().device, "cpu");
    EXPECT_THAT(placements.back().reason, testing::HasSubstr("compiler left it"));
    const auto strict = Session::open(compiled, {.devices = {"edgetpu:sim"}, .require_npu = true});
    ASSERT_FALSE(strict);
    EXPECT_THAT(strict.error().message(), testing::HasSubstr("would run on the CPU"));
}

TEST(CompiledSession, OperatorsOutsideTheArithmeticAreTFLites) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite");
    std::vector<bool> in_arithmetic(plain.subgraphs[0].operators.size(), true);
    in_arithmetic.back() = false;
    const auto mixed = Session::open(
        plain, {.arithmetic = &edgetpu::arithmetic(), .in_arithmetic = in_arithmetic});
    ASSERT_TRUE(mixed) << mixed.error().message();
    EXPECT_THAT(mixed->placements().front().reason, testing::HasSubstr("as the Edge TPU"));
    EXPECT_THAT(mixed->placements().back().reason,
                testing::HasSubstr("the compiled model leaves it to the CPU"));
    in_arithmetic.pop_back();
    const auto too_few = Session::open(
        plain, {.arithmetic = &edgetpu::arithmetic(), .in_arithmetic = in_arithmetic});
    ASSERT_FALSE(too_few);
    EXPECT_THAT(too_few.error().message(), testing::HasSubstr("`in_arithmetic` names"));
}

}  // namespace
}  // namespace reef::runtime
