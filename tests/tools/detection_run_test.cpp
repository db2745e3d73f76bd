// How reef run shows what a detector found.
#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::byte> detector_options() {
    flexbuffers::Builder flex;
    flex.Map([&] {
        flex.Int("max_detections", 4);
        flex.Int("max_classes_per_detection", 1);
        flex.Int("detections_per_class", 4);
        flex.Bool("use_regular_nms", false);
        flex.Float("nms_score_threshold", 0.3F);
        flex.Float("nms_iou_threshold", 0.5F);
        flex.Int("num_classes", 2);
        for (const char* scale : {"y_scale", "x_scale", "h_scale", "w_scale"}) {
            flex.Float(scale, 1.0F);
        }
    });
    flex.Finish();
    const auto bytes = std::as_bytes(std::span(flex.GetBuffer()));
    return {bytes.begin(), bytes.end()};
}

/// Three anchors of side 1 around 0; without shapes on the outputs, as converters write them.
std::vector<std::byte> detector_file() {
    model::Builder builder("detector");
    const auto boxes = builder.input("boxes", ElementType::float32, {1, 3, 4});
    const auto scores = builder.input("scores", ElementType::float32, {1, 3, 3});
    const std::array<float, 12> anchors = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1};
    const auto anchor =
        builder.constant("anchors", ElementType::float32, {3, 4}, std::span<const float>(anchors));
    std::vector<model::TensorIndex> outputs;
    for (const char* name : {"places", "classes", "found", "count"}) {
        outputs.push_back(builder.tensor(name, ElementType::float32, {}));
    }
    builder.add_custom(std::string(model::detection_postprocess_op), {boxes, scores, anchor},
                       outputs, detector_options());
    for (const auto output : outputs) builder.output(output);
    return model::write_tflite(builder.finish().value()).value();
}

class DetectionRunTest : public CommandTest {
  protected:
    std::string model = write("detector.tflite", detector_file());
    // Two boxes far apart, and a third below the threshold.
    std::string boxes =
        write_array("boxes.npy", float_array({1, 3, 4}, {2, 2, 0, 0, 6, 6, 0, 0, 9, 9, 0, 0}));
    std::string scores =
        write_array("scores.npy", float_array({1, 3, 3}, {0, 0.5F, 0.25F, 0, 0, 0.75F, 0, 0, 0}));
    std::string labels = write("labels.txt", "cat\ndog\n");
};

TEST_F(DetectionRunTest, TextIsATableOfObjects) {
    const std::string text =
        expect_ok({"run", model, "--input", boxes, "--input", scores, "--labels", labels});
    EXPECT_THAT(text, HasSubstr("2 detections"));
    EXPECT_THAT(text, HasSubstr("0.7500      1  dog    5.5000  5.5000  6.5000  6.5000"));
    EXPECT_THAT(text, HasSubstr("0.5000      0  cat    1.5000  1.5000  2.5000  2.5000"));
    const std::string first =
        expect_ok({"run", model, "--input", boxes, "--input", scores, "--top", "1"});
    EXPECT_THAT(first, HasSubstr("... 1 more: --top 2"));
    EXPECT_THAT(first, Not(HasSubstr("1.5000")));
}

TEST_F(DetectionRunTest, CountsTheLabels) {
    const auto run_with = [&](const std::string& text, const std::string& words) {
        expect_error({"run", model, "--input", boxes, "--input", scores, "--labels",
                      write("wrong.txt", text), "--out", file("nothing")},
                     1, words);
        EXPECT_FALSE(exists("nothing"));
    };
    run_with("cat\n", "1 labels for the 2 classes of TFLite_Detection_PostProcess");
    run_with("background\ncat\ndog\n", "leave out the label of the background");
}

TEST_F(DetectionRunTest, JsonAndArraysHoldTheSame) {
    const auto json =
        nlohmann::json::parse(expect_ok({"run", model, "--input", boxes, "--input", scores,
                                         "--labels", labels, "--json", "--out", file("out")}));
    ASSERT_EQ(json["detections"].size(), 2U);
    EXPECT_EQ(json["detections"][0]["label"], "dog");
    EXPECT_EQ(json["detections"][0]["score"], 0.75);
    EXPECT_EQ(json["detections"][0]["left"], 5.5);
    EXPECT_TRUE(exists("out/out3.npy"));
}

}  // namespace
}  // namespace reef::tool
