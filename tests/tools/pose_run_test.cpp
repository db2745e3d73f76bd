// How reef run shows the people that a pose network found.
#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int32_t height = 8, width = 12, keypoints = 17, stride = 16;

std::vector<std::byte> decoder_options() {
    flexbuffers::Builder flex;
    flex.Map([&] {
        flex.Int("max_detections", 3);
        flex.Float("nms_radius", 16.0F);
        flex.Float("score_threshold", 0.2F);
        flex.Int("stride", stride);
    });
    flex.Finish();
    const auto bytes = std::as_bytes(std::span(flex.GetBuffer()));
    return {bytes.begin(), bytes.end()};
}

/// The decoder alone; without shapes on the outputs, as converters write them.
std::vector<std::byte> decoder_file() {
    model::Builder builder("poses");
    std::vector<model::TensorIndex> inputs;
    const std::pair<const char*, std::int32_t> maps[] = {
        {"heat", keypoints}, {"short", 2 * keypoints}, {"mid", 64}};
    for (const auto& [name, channels] : maps)
        inputs.push_back(builder.input(name, ElementType::float32, {1, height, width, channels}));
    std::vector<model::TensorIndex> outputs;
    for (const char* name : {"places", "scores", "people", "count"})
        outputs.push_back(builder.tensor(name, ElementType::float32, {}));
    builder.add_custom(std::string(model::posenet_decoder_op), inputs, outputs, decoder_options());
    for (const auto output : outputs) builder.output(output);
    return model::write_tflite(builder.finish().value()).value();
}

class PoseRunTest : public CommandTest {
  protected:
    /// People whose keypoints all lie in one cell (offsets of 0): one at (2, 3) with keypoint
    /// logits 1 and nose 1.5, one at (5, 9) with logits 2 and nose 2.5. Below 0.2 elsewhere.
    [[nodiscard]] static std::vector<float> two_people() {
        std::vector<float> heat(height * width * keypoints, -10.0F);
        const auto stand = [&](std::size_t y, std::size_t x, float logit) {
            for (std::size_t k = 0; k < keypoints; ++k)
                heat[(y * width + x) * keypoints + k] = k == 0 ? logit + 0.5F : logit;
        };
        stand(2, 3, 1);
        stand(5, 9, 2);
        return heat;
    }
    [[nodiscard]] std::vector<std::string> run_on(const std::vector<float>& heat) const {
        const auto zeros = [](std::int32_t channels) {
            return float_array(
                {1, height, width, channels},
                std::vector<float>(static_cast<std::size_t>(height * width * channels), 0.0F));
        };
        return {
            "run",     model,
            "--input", write_array("heat.npy", float_array({1, height, width, keypoints}, heat)),
            "--input", write_array("short.npy", zeros(2 * keypoints)),
            "--input", write_array("mid.npy", zeros(64))};
    }
    static std::vector<std::string> with(std::vector<std::string> arguments,
                                         std::initializer_list<std::string> more) {
        arguments.insert(arguments.end(), more);
        return arguments;
    }

    std::string model = write("poses.tflite", decoder_file());
};

TEST_F(PoseRunTest, TextIsATableOfKeypointsPerPoseBestFirst) {
    const std::string text = expect_ok(run_on(two_people()));
    EXPECT_THAT(text, HasSubstr("2 poses\n"));
    // Scores: logistic(2.5) = 0.9241 for the nose, logistic(2) = 0.8808 for the 16 others; mean
    // 0.8833. The other person: 0.8176 and 0.7311, mean 0.7361. Cell (5, 9) is pixel (80, 144).
    EXPECT_THAT(text, HasSubstr("  pose 0, score 0.8833\n"));
    EXPECT_THAT(text, HasSubstr("  pose 1, score 0.7361\n"));
    EXPECT_LT(text.find("pose 0"), text.find("pose 1"));
    EXPECT_THAT(text, HasSubstr("  keypoint         score         x        y\n"));
    EXPECT_THAT(text, HasSubstr("  nose            0.9241  144.0000  80.0000\n"));
    EXPECT_THAT(text, HasSubstr("  right ankle     0.8808  144.0000  80.0000\n"));
    EXPECT_THAT(text, HasSubstr("  left shoulder   0.7311  48.0000  32.0000\n"));
}

TEST_F(PoseRunTest, TopLimitsThePosesShown) {
    const std::string text = expect_ok(with(run_on(two_people()), {"--top", "1"}));
    EXPECT_THAT(text, HasSubstr("2 poses"));
    EXPECT_THAT(text, HasSubstr("pose 0, score 0.8833"));
    EXPECT_THAT(text, Not(HasSubstr("pose 1")));
    EXPECT_THAT(text, HasSubstr("... 1 more: --top 2"));
}

TEST_F(PoseRunTest, NobodyIsSaidInText) {
    const std::string text =
        expect_ok(run_on(std::vector<float>(height * width * keypoints, -10.0F)));
    EXPECT_THAT(text, HasSubstr("0 poses\n"));
    EXPECT_THAT(text, Not(HasSubstr("keypoint")));
}

TEST_F(PoseRunTest, JsonHoldsTheSame) {
    const auto json = nlohmann::json::parse(expect_ok(with(run_on(two_people()), {"--json"})));
    ASSERT_EQ(json["poses"].size(), 2U);
    const auto& nose = json["poses"][0]["keypoints"][0];
    EXPECT_NEAR(nose["score"].get<double>(), 0.92414, 1e-5);
    EXPECT_EQ(nose["x"], 144);
    EXPECT_EQ(nose["y"], 80);
}

TEST_F(PoseRunTest, SeventeenPointsAreOnePerson) {
    model::Builder builder("one person");
    const auto in = builder.input("in", ElementType::float32, {1, 1, keypoints, 3});
    const auto out = builder.tensor("points", ElementType::float32, {1, 1, keypoints, 3});
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    const auto file = write("one.tflite", model::write_tflite(builder.finish().value()).value());
    std::vector<float> points;
    for (int k = 0; k < keypoints; ++k) points.insert(points.end(), {0.25F, 0.75F, 0.5F});
    const auto input = write_array("in.npy", float_array({1, 1, keypoints, 3}, points));
    const auto poses =
        nlohmann::json::parse(expect_ok({"run", file, "--input", input, "--json"}))["poses"];
    ASSERT_EQ(poses.size(), 1U);
    EXPECT_EQ(poses[0]["score"], 0.5);
    ASSERT_EQ(poses[0]["keypoints"].size(), std::size_t{keypoints});
    EXPECT_EQ(poses[0]["keypoints"][0]["y"], 0.25);
    EXPECT_EQ(poses[0]["keypoints"][0]["x"], 0.75);
}

}  // namespace
}  // namespace reef::tool
