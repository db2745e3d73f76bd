// What others state about well-known networks, reached through the real command with pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "pictures/image.h"
#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

class ResultsTest : public CommandTest {
  protected:
    /// Runs a reference model on a reference picture; `more` are further arguments.
    [[nodiscard]] nlohmann::json run(const std::filesystem::path& shared, const std::string& model,
                                     const std::string& picture,
                                     std::vector<std::string> more = {}) const {
        std::vector<std::string> arguments = {
            "run",     shared / "data/models" / (model + ".tflite"),
            "--input", shared / "data/images" / picture,
            "--runs",  "1",
            "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return nlohmann::json::parse(expect_ok(arguments));
    }

    /// The class is among the three best, with at least that score.
    static void expect_class(const nlohmann::json& result, std::size_t wanted, double score) {
        const nlohmann::json& top = result["outputs"][0]["top"];
        ASSERT_GE(top.size(), 3U);
        for (std::size_t i = 0; i < 3; ++i) {
            if (top[i]["class"] != wanted) continue;
            EXPECT_GE(top[i]["score"].get<double>(), score);
            return;
        }
        ADD_FAILURE() << "class " << wanted << " is not among " << top.dump();
    }
};

TEST_F(ResultsTest, MobilenetV1Quarter) {
    REEF_SHARED_OR_SKIP(shared);
    const nlohmann::json result = run(shared, "mobilenet_v1_0.25_128_quant", "cat.bmp",
                                      {"--labels", shared / "data/images/imagenet_labels.txt"});
    expect_class(result, 283, 0.25);
    EXPECT_EQ(result["outputs"][0]["top"][0]["label"], "tiger cat");
}

TEST_F(ResultsTest, MobilenetV1Half) {
    REEF_SHARED_OR_SKIP(shared);
    expect_class(run(shared, "mobilenet_v1_0.5_160_quant", "cat.bmp"), 286, 0.51);
}

TEST_F(ResultsTest, MobilenetV2) {
    REEF_SHARED_OR_SKIP(shared);
    expect_class(run(shared, "tf2_mobilenet_v2_1.0_224_ptq", "cat.bmp"), 286, 0.6);
}

TEST_F(ResultsTest, LstmReadsAHandwrittenNine) {
    REEF_SHARED_OR_SKIP(shared);
    expect_class(run(shared, "keras_lstm_mnist_ptq", "mnist_nine.bmp"), 9, 0.7);
}

TEST_F(ResultsTest, DeeplabFindsTheBird) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string labels = shared / "data/images/pascal_voc_segmentation_labels.txt";
    const nlohmann::json result =
        run(shared, "deeplabv3_mnv2_dm05_pascal_quant", "bird_segmentation.bmp",
            {"--labels", labels, "--out", file("out")});
    EXPECT_EQ(result["outputs"][0]["areas"][1]["label"], "bird");

    const SharedBytes output = read_file(file("out/out0.npy")).value();
    const Array classes = read_npy(output.view()).value();
    ASSERT_EQ(classes.shape, (std::vector<std::int64_t>{1, 513, 513}));
    ASSERT_EQ(classes.type, ElementType::int64);
    const SharedBytes mask_file =
        read_file(shared / "data/images/bird_segmentation_mask.bmp").value();
    const Image mask = decode_image(mask_file.view()).value();
    const std::size_t places = mask.rgb.size() / 3;
    ASSERT_EQ(places, 513U * 513U);
    std::size_t both = 0;
    for (std::size_t i = 0; i < places; ++i) {
        std::int64_t found = 0;
        std::memcpy(&found, &classes.data[i * sizeof found], sizeof found);
        // The palette is grey: its red value is the class, and 255 marks the objects' edges.
        const std::int64_t wanted = mask.rgb[3 * i] == 255 ? 0 : mask.rgb[3 * i];
        if (found == wanted) ++both;
    }
    // Of the sets of (place, class) pairs, as Coral's own tests count it.
    const double iou = static_cast<double>(both) / static_cast<double>(2 * places - both);
    EXPECT_GT(iou, 0.9);
}

/// Rows of pose_id,pose_score,keypoint_id,keypoint_score,keypoint_x,keypoint_y.
std::vector<std::array<double, 6>> reference_poses(const std::string& path) {
    const SharedBytes file = read_file(path).value();
    std::istringstream lines{std::string(as_text(file.view()))};
    std::vector<std::array<double, 6>> rows;
    for (std::string line; std::getline(lines, line);) {
        std::array<double, 6> row{};
        if (std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf,%lf,%lf", &row[0], &row[1], &row[2], &row[3],
                        &row[4], &row[5]) == 6) {
            rows.push_back(row);
        }
    }
    return rows;
}

TEST_F(ResultsTest, PosenetFindsTheReferencePoses) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string name = "posenet_mobilenet_v1_075_353_481_16_quant_decoder";
    const auto rows = reference_poses(shared / "data/models" / (name + "_reference.csv"));
    ASSERT_EQ(rows.size(), 2U * 17U);
    const nlohmann::json result = run(shared, name, "posenet_test_image.bmp");
    ASSERT_EQ(result["poses"].size(), 2U);
    // The reference is stated in parts of the picture, to six decimals, and comes from a model that
    // was quantised differently (its heatmap saturates at another value). Of the 68 coordinates 64
    // are equal; the others fall into a neighbouring cell of a map whose cells are 16 pixels apart.
    std::size_t equal = 0;
    for (const auto& row : rows) {
        const nlohmann::json& pose = result["poses"][static_cast<std::size_t>(row[0])];
        const nlohmann::json& point = pose["keypoints"][static_cast<std::size_t>(row[2])];
        EXPECT_NEAR(pose["score"].get<double>(), row[1], 0.001);
        EXPECT_NEAR(point["score"].get<double>(), row[3], 0.008);
        for (const auto& [axis, stated] : {std::pair{point["x"].get<double>() / 481, row[4]},
                                           std::pair{point["y"].get<double>() / 353, row[5]}}) {
            EXPECT_NEAR(axis, stated, 0.01) << point.dump();
            if (std::abs(axis - stated) < 1.5e-6) ++equal;
        }
    }
    EXPECT_GE(equal, 64U);
}

TEST_F(ResultsTest, DumpedTensorsAreTheGoldenOnes) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* model : {"split_concat", "keras_lstm_mnist_ptq"}) {
        const std::string golden = shared / "data/cpu_golden" / (std::string(model) + ".npz");
        const std::string path = shared / "data/models" / (std::string(model) + ".tflite");
        expect_ok({"run", path, "--input", golden, "--dump-all", file(model)});
        const nlohmann::json result = nlohmann::json::parse(
            expect_ok({"compare", file(model), golden, "--common", "--json"}));
        EXPECT_EQ(result["equal"], true);
        EXPECT_GE(result["tensors"].size(), 5U);
    }
}

}  // namespace
}  // namespace reef::tool
