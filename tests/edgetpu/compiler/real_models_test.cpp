// All plain models of the reference data, compiled, watched: every byte of the chip's arithmetic.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edgetpu/compiler/outcome.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

struct RealModel {
    const char* file;     ///< below the reference data, without ".tflite"
    std::size_t on_chip;  ///< operators at least
    /// Accesses to rows of parameters that several instructions send, as in the vendor's programs
    /// of the same models (docs/simulator.md).
    std::size_t read_twice = 0;
};

void PrintTo(const RealModel& model, std::ostream* out) {
    *out << model.file;
}

class CompileReal : public testing::TestWithParam<RealModel> {};

TEST_P(CompileReal, GivesTheBytesOfTheChipsArithmetic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model =
        test::load_model(shared / "data" / fmt::format("{}.tflite", GetParam().file));
    const test::Outcome out = test::outcome_of(model);
    fmt::print("{} of {} operators are on the chip\n", out.on_chip, out.on_chip + out.left);
    EXPECT_TRUE(out.compiled);
    EXPECT_GE(out.on_chip, GetParam().on_chip);
    EXPECT_EQ(out.findings.size(), GetParam().read_twice);
    EXPECT_THAT(out.findings,
                testing::Each(testing::StartsWith(
                    "reads a second time what known programs read once: wide memory")));
    if (out.findings.empty()) {
        EXPECT_EQ(out.problem, "");
    } else {
        EXPECT_THAT(out.problem, testing::StartsWith("finding: "));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Small, CompileReal,
    testing::Values(
        RealModel{"models/mobilenet_v1_0.25_128_quant", 31}, RealModel{"models/split_concat", 3},
        RealModel{"models/keras_lstm_mnist_ptq", 6}, RealModel{"edgetpu/templates/bright_16x16", 6},
        RealModel{"edgetpu/templates/bright_64x64", 6},
        RealModel{"edgetpu/templates/color_green_64x64", 7},
        RealModel{"edgetpu/templates/color_red_64x64", 7},
        RealModel{"edgetpu/templates/color_white_64x64", 7},
        RealModel{"edgetpu/templates/dense_256", 3}, RealModel{"edgetpu/templates/dense_1024", 3},
        RealModel{"edgetpu/templates/gabor_64x64_7k_4o_2s", 3},
        RealModel{"edgetpu/templates/gabor_64x64_p4", 4},
        RealModel{"edgetpu/templates/looming_64x64_3x3", 9},
        RealModel{"edgetpu/wild/libredge__gabor_128x128_7k_4o_2s", 3},
        RealModel{"edgetpu/wild/libredge__gabor_128x128_p4", 4},
        RealModel{"edgetpu/wild/rt10__mobilenet_v1_0.25_128_quant", 31},
        RealModel{"edgetpu/wild/tcn__quantized_model", 6}));

#if defined(REEF_LARGE_PROGRAMS)
INSTANTIATE_TEST_SUITE_P(
    Large, CompileReal,
    testing::Values(
        RealModel{"models/mobilenet_v1_0.5_160_quant", 31},
        RealModel{"models/tf2_mobilenet_v2_1.0_224_ptq", 68},
        RealModel{"models/movenet_single_pose_lightning_ptq", 98},
        RealModel{"models/deeplabv3_mnv2_dm05_pascal_quant", 68, 6},
        RealModel{"models/posenet_mobilenet_v1_075_353_481_16_quant_decoder", 37, 4},
        RealModel{"edgetpu/wild/facemesh__face_landmark_192_full_integer_quant", 165},
        RealModel{"edgetpu/wild/facemesh__face_detection_front_128_full_integer_quant", 75},
        RealModel{"edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor", 28},
        RealModel{"edgetpu/wild/micro__posenet_mobilenet_v1_075_353_481_quant_decoder", 32, 4},
        RealModel{"edgetpu/wild/mot__yolov5nu_full_integer_quant", 254},
        RealModel{"edgetpu/wild/mot__yolov8n_full_integer_quant", 242},
        // Two programs with the CPU's operators between them, of many streams.
        RealModel{"edgetpu/wild/mot__yolov10n_full_integer_quant", 431},
        RealModel{"edgetpu/wild/lite640__yolov8n_full_integer_quant", 230, 9}));
#endif

}  // namespace
}  // namespace reef
