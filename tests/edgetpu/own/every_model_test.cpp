// Everything that reads compiled models, on what Reef's compiler makes of the plain models of the
// reference data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "changed_weights.h"
#include "edgetpu/retarget/other_numbers.h"
#include "host_addresses.h"
#include "reef/chip/disassembler.h"
#include "reef/chip/inspector.h"
#include "reef/chip/retargeter.h"
#include "reef/chip/traffic.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/runtime/registry.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu {
namespace {

/// Below the reference data's folder, without ".tflite".
struct PlainFile {
    std::string name;
    std::size_t tensors = 0;  ///< whose weights are replaced alone
    /// The program alone says where each operator's numbers are.
    bool readable_alone = true;
};

void PrintTo(const PlainFile& file, std::ostream* out) {
    *out << file.name.substr(file.name.rfind('/') + 1);
}

/// Dots are no part of a test's name.
std::string name_of_file(const testing::TestParamInfo<PlainFile>& info) {
    std::string name = testing::PrintToString(info.param);
    std::ranges::replace(name, '.', '_');
    return name;
}

class OwnFile : public testing::TestWithParam<PlainFile> {
  protected:
    template <class Part>
    static const Part& part() {
        return *runtime::Registry::of_process().part<Part>("edgetpu");
    }

    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        plain_ = test::load_model(shared / "data" / (GetParam().name + ".tflite"));
        auto compiled = compile(plain_, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        compiled_ = std::move(compiled->model);
        ASSERT_FALSE(packages_of(compiled_).value().empty());
    }

    model::Model plain_, compiled_;
};

TEST_P(OwnFile, WeightsAreReplaced) {
    const auto done = test::expect_weights_are_replaced(plain_, compiled_, 17, GetParam().tensors);
    fmt::print("{} bytes of parameters, {} tensors replaced alone\n", done.bytes, done.changed);
    EXPECT_GT(done.bytes, 0U);
}

TEST_P(OwnFile, IsShownAndKeepsTheRules) {
    const auto inspection = part<chip::Inspector>().inspect(compiled_);
    EXPECT_TRUE(inspection->is_compiled());
    EXPECT_FALSE(inspection->sections(chip::Detail::all).empty());
    const auto& disassembler = part<chip::Disassembler>();
    const auto programs = disassembler.programs_of(compiled_);
    ASSERT_TRUE(programs) << programs.error().message();
    for (const chip::Program& program : *programs) {
        std::vector<Bytes> views;
        for (const SharedBytes& stream : program.streams) {
            views.push_back(stream.view());
            const auto again = disassembler.assemble(disassembler.text_of(views.back(), {}));
            ASSERT_TRUE(again) << again.error().message();
            EXPECT_TRUE(std::ranges::equal(again->front().bytes, views.back()));
        }
        const auto check = disassembler.check(views);
        EXPECT_TRUE(check.followed);
        EXPECT_TRUE(check.faults.empty()) << check.faults.front().what;
        EXPECT_TRUE(check.unmodelled.empty()) << check.unmodelled.front().what;
    }
}

TEST_P(OwnFile, IsRecordedAndReplayed) {
    const auto runs = [this](unsigned seed) {
        return chip::TrafficRuns{
            .model = compiled_,
            .place = GetParam().name,
            .inputs = [seed](const model::Subgraph& graph)
                -> Result<std::vector<std::vector<std::byte>>> {
                std::vector<std::vector<std::byte>> inputs;
                for (const auto index : graph.inputs) {
                    const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
                    inputs.emplace_back(static_cast<std::size_t>(tensor.byte_count().value()));
                    test::draw_picture(inputs.back(), seed);
                }
                return inputs;
            }};
    };
    const auto& recorder = part<chip::TrafficRecorder>();
    const test::TemporaryFolder folder;
    const auto recorded = recorder.record("edgetpu:sim", runs(3));
    ASSERT_TRUE(recorded) << recorded.error().message();
    ASSERT_TRUE(recorded->done) << recorded->done.error().message();
    const std::string path = folder.file("traffic.log");
    ASSERT_TRUE(recorded->traffic->write(path));
    const auto read = recorder.read(path);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_TRUE((*read)->replay(runs(3)).value().as_recorded);
    EXPECT_FALSE((*read)->replay(runs(4)).value().as_recorded);
}

TEST_P(OwnFile, HostMemoryMayLieAnywhere) {
    EXPECT_GT(test::expect_hints_hold_anywhere(compiled_, 2), 0U);
    const auto streamed = compile(plain_, {.stream_parameters = true});
    ASSERT_TRUE(streamed) << streamed.error().message();
    EXPECT_GT(test::expect_hints_hold_anywhere(streamed->model, 2), 0U);
}

class RetargetedOwnFile : public OwnFile {};

TEST_P(RetargetedOwnFile, ComputesTheOtherModel) {
    for (const test::Change change : {test::Change::all, test::Change::slight}) {
        SCOPED_TRACE(change == test::Change::all ? "all numbers" : "slight changes");
        const auto target = test::with_other_numbers(plain_, 1, change);
        for (const bool with_source : {true, false}) {
            SCOPED_TRACE(with_source ? "with the source" : "without the source");
            const auto result =
                part<chip::Retargeter>().retarget({.compiled = compiled_,
                                                   .target = target,
                                                   .source = with_source ? &plain_ : nullptr});
            if (!with_source && !GetParam().readable_alone) {
                ASSERT_FALSE(result);
                EXPECT_EQ(result.error().cause, Cause::unsupported);
                continue;
            }
            ASSERT_TRUE(result) << result.error().message();
            test::expect_computes(target, result->model, 5);
        }
    }
}

constexpr std::size_t every_tensor = 1000;

INSTANTIATE_TEST_SUITE_P(
    Templates, OwnFile,
    testing::Values(PlainFile{"edgetpu/templates/bright_16x16", every_tensor},
                    PlainFile{"edgetpu/templates/bright_64x64", every_tensor},
                    PlainFile{"edgetpu/templates/color_green_64x64", every_tensor},
                    PlainFile{"edgetpu/templates/color_red_64x64", every_tensor},
                    PlainFile{"edgetpu/templates/color_white_64x64", every_tensor},
                    PlainFile{"edgetpu/templates/dense_256", every_tensor},
                    PlainFile{"edgetpu/templates/dense_1024", every_tensor},
                    PlainFile{"edgetpu/templates/gabor_64x64_7k_4o_2s", every_tensor},
                    PlainFile{"edgetpu/templates/gabor_64x64_p4", every_tensor},
                    PlainFile{"edgetpu/templates/looming_64x64_3x3", every_tensor}),
    name_of_file);

INSTANTIATE_TEST_SUITE_P(
    Models, OwnFile,
    testing::Values(PlainFile{"models/keras_lstm_mnist_ptq", every_tensor},
                    PlainFile{"models/split_concat", every_tensor},
                    PlainFile{"models/mobilenet_v1_0.25_128_quant", 6},
                    PlainFile{"models/mobilenet_v1_0.5_160_quant", 2},
                    PlainFile{"models/tf2_mobilenet_v2_1.0_224_ptq", 2},
                    PlainFile{"models/deeplabv3_mnv2_dm05_pascal_quant", 1},
                    PlainFile{"models/movenet_single_pose_lightning_ptq", 2},
                    PlainFile{"models/posenet_mobilenet_v1_075_353_481_16_quant_decoder", 1}),
    name_of_file);

INSTANTIATE_TEST_SUITE_P(
    Wild, OwnFile,
    testing::Values(
        PlainFile{"edgetpu/wild/libredge__gabor_128x128_7k_4o_2s", every_tensor},
        PlainFile{"edgetpu/wild/libredge__gabor_128x128_p4", every_tensor},
        PlainFile{"edgetpu/wild/tcn__quantized_model", 4},
        PlainFile{"edgetpu/wild/facemesh__face_detection_front_128_full_integer_quant", 3},
        PlainFile{"edgetpu/wild/facemesh__face_landmark_192_full_integer_quant", 2},
        PlainFile{"edgetpu/wild/rt10__mobilenet_v1_0.25_128_quant", 3},
        PlainFile{"edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor", 1},
        PlainFile{"edgetpu/wild/micro__posenet_mobilenet_v1_075_353_481_quant_decoder", 0},
        PlainFile{"edgetpu/wild/mot__yolov5nu_full_integer_quant", 0},
        PlainFile{"edgetpu/wild/mot__yolov8n_full_integer_quant", 0},
        PlainFile{"edgetpu/wild/mot__yolov10n_full_integer_quant", 0},
        PlainFile{"edgetpu/wild/lite640__yolov8n_full_integer_quant", 0}),
    name_of_file);

INSTANTIATE_TEST_SUITE_P(Templates, RetargetedOwnFile,
                         testing::Values(PlainFile{"edgetpu/templates/bright_16x16"},
                                         PlainFile{"edgetpu/templates/bright_64x64"},
                                         PlainFile{"edgetpu/templates/color_green_64x64"},
                                         PlainFile{"edgetpu/templates/color_red_64x64"},
                                         PlainFile{"edgetpu/templates/color_white_64x64"},
                                         PlainFile{"edgetpu/templates/dense_256"},
                                         PlainFile{"edgetpu/templates/dense_1024"},
                                         PlainFile{"edgetpu/templates/gabor_64x64_7k_4o_2s"},
                                         PlainFile{"edgetpu/templates/gabor_64x64_p4"},
                                         PlainFile{"edgetpu/templates/looming_64x64_3x3"}),
                         name_of_file);

INSTANTIATE_TEST_SUITE_P(
    Models, RetargetedOwnFile,
    testing::Values(PlainFile{.name = "models/keras_lstm_mnist_ptq", .readable_alone = false},
                    PlainFile{"models/split_concat"},
                    PlainFile{"models/mobilenet_v1_0.25_128_quant"},
                    PlainFile{"models/mobilenet_v1_0.5_160_quant"},
                    PlainFile{"models/tf2_mobilenet_v2_1.0_224_ptq"},
                    PlainFile{"models/deeplabv3_mnv2_dm05_pascal_quant"},
                    PlainFile{"models/movenet_single_pose_lightning_ptq"},
                    PlainFile{"models/posenet_mobilenet_v1_075_353_481_16_quant_decoder"}),
    name_of_file);

INSTANTIATE_TEST_SUITE_P(
    Wild, RetargetedOwnFile,
    testing::Values(PlainFile{"edgetpu/wild/libredge__gabor_128x128_7k_4o_2s"},
                    PlainFile{"edgetpu/wild/libredge__gabor_128x128_p4"},
                    PlainFile{"edgetpu/wild/rt10__mobilenet_v1_0.25_128_quant"},
                    PlainFile{"edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor"},
                    PlainFile{"edgetpu/wild/micro__posenet_mobilenet_v1_075_353_481_quant_decoder"},
                    PlainFile{"edgetpu/wild/tcn__quantized_model"},
                    PlainFile{.name = "edgetpu/wild/facemesh__face_landmark_192_full_integer_quant",
                              .readable_alone = false},
                    PlainFile{"edgetpu/wild/mot__yolov8n_full_integer_quant"}),
    name_of_file);

}  // namespace
}  // namespace reef::edgetpu
