// TFLite_Detection_PostProcess and PosenetDecoderOp against definitions written anew: brute force
// over all boxes, and a person drawn into the maps.
#include <flatbuffers/flexbuffers.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cpu/prepare/non_max_suppression.h"
#include "cpu/run_model.h"

namespace reef::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Detector {
    std::int32_t boxes = 0;
    std::int32_t classes = 0;
    bool background = true;
    std::int32_t max_detections = 10;
    std::int32_t classes_per_detection = 1;
    std::int32_t per_class = 100;
    bool regular = false;
    float score_threshold = 0.3F;
    float iou_threshold = 0.5F;

    [[nodiscard]] std::int32_t columns() const { return classes + (background ? 1 : 0); }
    [[nodiscard]] std::int32_t entries() const { return max_detections * classes_per_detection; }
};

std::vector<std::byte> flex_options(const Detector& d) {
    flexbuffers::Builder flex;
    flex.Map([&] {
        flex.Int("max_detections", d.max_detections);
        flex.Int("max_classes_per_detection", d.classes_per_detection);
        flex.Int("detections_per_class", d.per_class);
        flex.Bool("use_regular_nms", d.regular);
        flex.Float("nms_score_threshold", d.score_threshold);
        flex.Float("nms_iou_threshold", d.iou_threshold);
        flex.Int("num_classes", d.classes);
        for (const char* scale : {"y_scale", "x_scale", "h_scale", "w_scale"})
            flex.Float(scale, 1.0F);
    });
    flex.Finish();
    return bytes_of(flex.GetBuffer());
}

/// Anchors with centre 0 and size 1: an encoding's centre stays, its size is exp(size).
model::Model build(const Detector& d, bool declare_shapes = true) {
    model::Builder builder("detector");
    const auto encodings = builder.input("boxes", ElementType::float32, {1, d.boxes, 4});
    const auto scores = builder.input("scores", ElementType::float32, {1, d.boxes, d.columns()});
    std::vector<float> anchors;
    for (std::int32_t i = 0; i < d.boxes; ++i) anchors.insert(anchors.end(), {0, 0, 1, 1});
    const auto anchor =
        builder.constant<float>("anchors", ElementType::float32, {d.boxes, 4}, anchors);
    const auto n = d.entries();
    std::vector<std::vector<std::int32_t>> shapes{{1, n, 4}, {1, n}, {1, n}, {1}};
    std::vector<model::TensorIndex> outputs;
    for (const auto& shape : shapes)
        outputs.push_back(builder.tensor("out", ElementType::float32,
                                         declare_shapes ? shape : std::vector<std::int32_t>{}));
    builder.add_custom(std::string(model::detection_postprocess_op), {encodings, scores, anchor},
                       outputs, flex_options(d));
    for (const auto output : outputs) builder.output(output);
    auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    return model ? std::move(*model) : model::Model{};
}

struct Found {
    std::vector<float> boxes, classes, scores;
    std::size_t count = 0;
};

Found detect(const Detector& d, const std::vector<float>& encodings,
             const std::vector<float>& scores, bool declare_shapes = true) {
    const auto outputs =
        run_model(build(d, declare_shapes), {bytes_of(encodings), bytes_of(scores)});
    if (outputs.size() != 4) return {};
    return {values_of<float>(outputs[0]), values_of<float>(outputs[1]),
            values_of<float>(outputs[2]),
            static_cast<std::size_t>(values_of<float>(outputs[3])[0])};
}

/// The encoding of a box by its centre and sides.
std::array<float, 4> encoded(float y, float x, float height, float width) {
    return {y, x, std::log(height), std::log(width)};
}

using cpu::Box;

double overlap(const Box& a, const Box& b) {
    const auto length = [](double low, double high) { return std::max(high - low, 0.0); };
    const double both = length(std::max(a.y_min, b.y_min), std::min(a.y_max, b.y_max)) *
                        length(std::max(a.x_min, b.x_min), std::min(a.x_max, b.x_max));
    const double area_a = length(a.y_min, a.y_max) * length(a.x_min, a.x_max);
    const double area_b = length(b.y_min, b.y_max) * length(b.x_min, b.x_max);
    return both / (area_a + area_b - both);
}

/// Greedy suppression by its definition: repeatedly take the best box left, drop what overlaps it.
std::vector<std::size_t> survivors(const std::vector<Box>& boxes, const std::vector<float>& scores,
                                   const Detector& d, std::size_t limit) {
    std::vector<bool> left(boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) left[i] = scores[i] >= d.score_threshold;
    std::vector<std::size_t> kept;
    while (kept.size() < limit) {
        std::size_t best = boxes.size();
        for (std::size_t i = 0; i < boxes.size(); ++i)
            if (left[i] && (best == boxes.size() || scores[i] > scores[best])) best = i;
        if (best == boxes.size()) break;
        kept.push_back(best);
        left[best] = false;
        for (std::size_t i = 0; i < boxes.size(); ++i)
            if (overlap(boxes[best], boxes[i]) > d.iou_threshold) left[i] = false;
    }
    return kept;
}

struct Scene {
    std::vector<float> encodings, scores;
    std::vector<Box> boxes;
};

Scene random_scene(const Detector& d, std::mt19937& random) {
    std::uniform_real_distribution<float> place(0, 4);
    std::uniform_real_distribution<float> side(0.5F, 2);
    std::uniform_real_distribution<float> score(0, 1);
    Scene scene;
    for (std::int32_t i = 0; i < d.boxes; ++i) {
        const float y = place(random);
        const float x = place(random);
        const float height = side(random);
        const float width = side(random);
        const auto code = encoded(y, x, height, width);
        scene.encodings.insert(scene.encodings.end(), code.begin(), code.end());
        scene.boxes.push_back({y - height / 2, x - width / 2, y + height / 2, x + width / 2});
    }
    const auto count = static_cast<std::size_t>(d.boxes) * static_cast<std::size_t>(d.columns());
    for (std::size_t i = 0; i < count; ++i) scene.scores.push_back(score(random));
    return scene;
}

std::vector<float> class_scores(const Detector& d, const Scene& scene, std::int32_t label) {
    std::vector<float> scores;
    for (std::int32_t i = 0; i < d.boxes; ++i)
        scores.push_back(scene.scores[static_cast<std::size_t>(i * d.columns() + label +
                                                               (d.background ? 1 : 0))]);
    return scores;
}

void expect_box(const Found& found, std::size_t entry, const Box& box) {
    const std::array<float, 4> corners{box.y_min, box.x_min, box.y_max, box.x_max};
    for (std::size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(found.boxes[entry * 4 + k], corners[k], 1e-5) << "entry " << entry;
}

void expect_zero_padding(const Found& found, std::size_t used) {
    for (std::size_t i = used; i < found.scores.size(); ++i) {
        EXPECT_EQ(found.scores[i], 0);
        EXPECT_EQ(found.classes[i], 0);
        for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(found.boxes[i * 4 + k], 0);
    }
}

TEST(DetectionPostprocess, FastSuppressionEqualsBruteForce) {
    std::mt19937 random(21);
    for (int round = 0; round < 60; ++round) {
        const Detector d{.boxes = pick(random, 1, 40),
                         .classes = pick(random, 1, 5),
                         .background = round % 2 == 0,
                         .max_detections = pick(random, 1, 12),
                         .classes_per_detection = pick(random, 1, 3)};
        const Scene scene = random_scene(d, random);
        std::vector<float> best(scene.boxes.size(), 0.0F);
        for (std::int32_t label = 0; label < d.classes; ++label) {
            const auto scores = class_scores(d, scene, label);
            for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::max(best[i], scores[i]);
        }
        const auto expected =
            survivors(scene.boxes, best, d, static_cast<std::size_t>(d.max_detections));
        const Found found = detect(d, scene.encodings, scene.scores, round % 3 != 0);
        ASSERT_EQ(found.count, expected.size());
        const auto step = static_cast<std::size_t>(d.classes_per_detection);
        const auto reported = static_cast<std::size_t>(std::min(step, std::size_t(d.classes)));
        for (std::size_t i = 0; i < expected.size(); ++i) {
            std::vector<std::int32_t> labels(static_cast<std::size_t>(d.classes));
            std::iota(labels.begin(), labels.end(), 0);
            std::ranges::sort(labels, std::greater{}, [&](std::int32_t label) {
                return class_scores(d, scene, label)[expected[i]];
            });
            for (std::size_t k = 0; k < reported; ++k) {
                const std::size_t entry = i * step + k;
                expect_box(found, entry, scene.boxes[expected[i]]);
                EXPECT_EQ(found.classes[entry], static_cast<float>(labels[k]));
                EXPECT_EQ(found.scores[entry], class_scores(d, scene, labels[k])[expected[i]]);
            }
        }
        expect_zero_padding(found, expected.size() * step);
    }
}

TEST(DetectionPostprocess, RegularSuppressionEqualsBruteForce) {
    std::mt19937 random(22);
    for (int round = 0; round < 60; ++round) {
        const Detector d{.boxes = pick(random, 1, 40),
                         .classes = pick(random, 1, 5),
                         .background = round % 2 == 0,
                         .max_detections = pick(random, 1, 20),
                         .per_class = pick(random, 1, 10),
                         .regular = true};
        Scene scene = random_scene(d, random);
        // Of quantised scores many are equal.
        if (round % 3 != 0)
            for (float& score : scene.scores) score = std::round(score * 8) / 8;
        struct Entry {
            float score;
            std::int32_t label;
            std::size_t box;
        };
        std::vector<Entry> expected;
        for (std::int32_t label = 0; label < d.classes; ++label) {
            const auto scores = class_scores(d, scene, label);
            for (const std::size_t box :
                 survivors(scene.boxes, scores, d, static_cast<std::size_t>(d.per_class)))
                expected.push_back({scores[box], label, box});
        }
        // Of equal ones the last class's come first, and of one class in the order of boxes: the
        // TFLite library of release 2.9 (a reader of its results found so in 200 of 200 networks).
        std::ranges::stable_sort(expected, [](const Entry& a, const Entry& b) {
            return a.score != b.score ? a.score > b.score : a.label > b.label;
        });
        if (expected.size() > static_cast<std::size_t>(d.max_detections))
            expected.resize(static_cast<std::size_t>(d.max_detections));
        const Found found = detect(d, scene.encodings, scene.scores);
        ASSERT_EQ(found.count, expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expect_box(found, i, scene.boxes[expected[i].box]);
            EXPECT_EQ(found.classes[i], static_cast<float>(expected[i].label));
            EXPECT_EQ(found.scores[i], expected[i].score);
        }
        expect_zero_padding(found, expected.size());
    }
}

TEST(DetectionPostprocess, KeepsTouchingBoxesAndDropsTheCoveredOne) {
    // Two unit squares side by side, and one that covers two thirds of the first.
    const Detector d{.boxes = 3, .classes = 2, .background = true, .max_detections = 4};
    std::vector<float> encodings;
    for (const auto& code :
         {encoded(0.5F, 0.5F, 1, 1), encoded(0.5F, 1.5F, 1, 1), encoded(0.5F, 0.7F, 1, 1)})
        encodings.insert(encodings.end(), code.begin(), code.end());
    const std::vector<float> scores{0.9F, 0.1F, 0.6F, 0.9F, 0.8F, 0.2F, 0.9F, 0.5F, 0.1F};
    const Found found = detect(d, encodings, scores);
    EXPECT_EQ(found.count, 2U);
    EXPECT_THAT(found.classes, ElementsAre(0, 1, 0, 0));
    EXPECT_THAT(found.scores, ElementsAre(0.8F, 0.6F, 0, 0));
    expect_box(found, 0, {0, 1, 1, 2});
    expect_box(found, 1, {0, 0, 1, 1});
}

TEST(DetectionPostprocess, RefusesSenselessOptions) {
    Detector d{.boxes = 2, .classes = 3};
    d.iou_threshold = 1.5F;
    EXPECT_THAT(refusal(build(d)), HasSubstr("'nms_iou_threshold' is 1.5, above 1"));
    d.iou_threshold = 0.5F;
    d.max_detections = 0;
    EXPECT_THAT(refusal(build(d)), HasSubstr("'max_detections' is 0"));
}

TEST(NonMaxSuppression, DegenerateBoxesOverlapNothing) {
    const Box line{0, 0, 0, 1};
    EXPECT_EQ(cpu::intersection_over_union(line, line), 0);
    const Box square{0, 0, 2, 2};
    EXPECT_EQ(cpu::intersection_over_union(square, square), 1);
    EXPECT_EQ(cpu::intersection_over_union(square, {1, 0, 3, 2}), 2.0F / 6);
}

constexpr std::int32_t map_height = 20, map_width = 24, keypoints = 17, stride = 8;

/// Person p stands with keypoint k at cell (k, 4 + 10 p + k % 3).
struct Cell {
    std::int32_t y, x;
};
Cell cell_of(std::int32_t person, std::int32_t k) {
    return {k + 1, 4 + 10 * person + k % 3};
}

constexpr std::array<std::array<std::int32_t, 2>, 16> limbs{{{0, 1},
                                                             {1, 3},
                                                             {0, 2},
                                                             {2, 4},
                                                             {0, 5},
                                                             {5, 7},
                                                             {7, 9},
                                                             {5, 11},
                                                             {11, 13},
                                                             {13, 15},
                                                             {0, 6},
                                                             {6, 8},
                                                             {8, 10},
                                                             {6, 12},
                                                             {12, 14},
                                                             {14, 16}}};

struct Maps {
    std::vector<float> heat = std::vector<float>(map_height * map_width * keypoints, -10.0F);
    std::vector<float> near = std::vector<float>(map_height * map_width * 2 * keypoints, 0.0F);
    std::vector<float> mid = std::vector<float>(map_height * map_width * 64, 0.0F);

    static std::size_t at(Cell c, std::int32_t channels, std::int32_t channel) {
        return static_cast<std::size_t>((c.y * map_width + c.x) * channels + channel);
    }
    void draw(std::int32_t person, std::int32_t root, float logit) {
        for (std::int32_t k = 0; k < keypoints; ++k)
            heat[at(cell_of(person, k), keypoints, k)] = k == root ? logit + 1 : logit;
        for (std::int32_t e = 0; e < 16; ++e) {
            const auto [from, to] = limbs[static_cast<std::size_t>(e)];
            const Cell a = cell_of(person, from);
            const Cell b = cell_of(person, to);
            mid[at(a, 64, e)] = static_cast<float>((b.y - a.y) * stride);
            mid[at(a, 64, 16 + e)] = static_cast<float>((b.x - a.x) * stride);
            mid[at(b, 64, 32 + e)] = static_cast<float>((a.y - b.y) * stride);
            mid[at(b, 64, 48 + e)] = static_cast<float>((a.x - b.x) * stride);
        }
    }
};

/// `far`: long offsets, for masks; empty for none.
std::vector<std::vector<float>> decode(const Maps& maps, std::int32_t max_detections,
                                       const std::vector<float>& far = {}) {
    flexbuffers::Builder flex;
    flex.Map([&] {
        flex.Int("max_detections", max_detections);
        flex.Float("nms_radius", 16.0F);
        flex.Float("score_threshold", 0.2F);
        flex.Int("stride", stride);
    });
    flex.Finish();
    model::Builder builder("posenet");
    std::vector<model::TensorIndex> inputs;
    std::vector<std::int32_t> channel_counts{keypoints, 2 * keypoints, 64};
    std::vector inputs_given{bytes_of(maps.heat), bytes_of(maps.near), bytes_of(maps.mid)};
    if (!far.empty()) {
        channel_counts.push_back(2 * keypoints);
        inputs_given.push_back(bytes_of(far));
    }
    for (const std::int32_t channels : channel_counts)
        inputs.push_back(
            builder.input("map", ElementType::float32, {1, map_height, map_width, channels}));
    std::vector<model::TensorIndex> outputs;
    for (int i = 0; i < (far.empty() ? 4 : 5); ++i)
        outputs.push_back(builder.tensor("out", ElementType::float32, {}));
    builder.add_custom(std::string(model::posenet_decoder_op), inputs, outputs,
                       bytes_of(flex.GetBuffer()));
    for (const auto output : outputs) builder.output(output);
    const auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    std::vector<std::vector<float>> results;
    for (const auto& bytes : run_model(*model, inputs_given))
        results.push_back(values_of<float>(bytes));
    return results;
}

float logistic(float x) {
    return 1 / (1 + std::exp(-x));
}

// Roots: the nose reaches everything forwards, the right ankle needs backward edges.
class PosenetRoots : public testing::TestWithParam<std::int32_t> {};

TEST_P(PosenetRoots, FindsBothPeopleBestFirst) {
    Maps maps;
    maps.draw(0, GetParam(), 1.0F);
    maps.draw(1, GetParam(), 2.0F);
    const auto results = decode(maps, 5);
    ASSERT_EQ(results.size(), 4U);
    ASSERT_EQ(results[3][0], 2);
    for (std::int32_t pose = 0; pose < 2; ++pose) {
        const std::int32_t person = 1 - pose;
        const float logit = person == 1 ? 2.0F : 1.0F;
        const float expected = (16 * logistic(logit) + logistic(logit + 1)) / 17;
        EXPECT_NEAR(results[2][static_cast<std::size_t>(pose)], expected, 1e-6);
        for (std::int32_t k = 0; k < keypoints; ++k) {
            const auto at = static_cast<std::size_t>(pose * keypoints + k);
            const Cell cell = cell_of(person, k);
            EXPECT_NEAR(results[0][2 * at], cell.y * stride, 1e-4) << "keypoint " << k;
            EXPECT_NEAR(results[0][2 * at + 1], cell.x * stride, 1e-4) << "keypoint " << k;
            EXPECT_NEAR(results[1][at], logistic(k == GetParam() ? logit + 1 : logit), 1e-6);
        }
    }
    for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(results[2][i], 0);
    for (std::size_t i = 2 * keypoints; i < results[1].size(); ++i) EXPECT_EQ(results[1][i], 0);
}

INSTANTIATE_TEST_SUITE_P(Roots, PosenetRoots, testing::Values(0, 1, 16));

// Long offsets that lead each half of the map to the person in it: masks are the halves.
TEST(Posenet, SharesTheMapOutToThePoses) {
    Maps maps;
    maps.draw(0, 0, 1.0F);
    maps.draw(1, 0, 2.0F);
    std::vector<float> far(map_height * map_width * 2 * keypoints);
    for (std::int32_t y = 0; y < map_height; ++y) {
        for (std::int32_t x = 0; x < map_width; ++x) {
            for (std::int32_t k = 0; k < keypoints; ++k) {
                const Cell to = cell_of(x < map_width / 2 ? 0 : 1, k);
                far[Maps::at({y, x}, 2 * keypoints, k)] = static_cast<float>((to.y - y) * stride);
                far[Maps::at({y, x}, 2 * keypoints, keypoints + k)] =
                    static_cast<float>((to.x - x) * stride);
            }
        }
    }
    const auto results = decode(maps, 3, far);
    ASSERT_EQ(results.size(), 5U);
    ASSERT_EQ(results[3][0], 2);
    const std::size_t cells = map_height * map_width;
    ASSERT_EQ(results[4].size(), 3 * cells);
    for (std::size_t cell = 0; cell < cells; ++cell) {
        const bool left = cell % map_width < map_width / 2;
        // The better pose, person 1, comes first.
        EXPECT_EQ(results[4][cell], left ? 0 : 1) << cell;
        EXPECT_EQ(results[4][cells + cell], left ? 1 : 0) << cell;
        EXPECT_EQ(results[4][2 * cells + cell], 0) << cell;
    }
    EXPECT_EQ(decode(Maps{}, 3, far)[4], std::vector<float>(3 * cells));
}

TEST(Posenet, FindsNobodyOnEmptyMaps) {
    const auto results = decode(Maps{}, 3);
    ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[3][0], 0);
    EXPECT_THAT(results[2], ElementsAre(0, 0, 0));
}

TEST(Posenet, KeepsPositionsOnTheMapForAnyNumbers) {
    std::mt19937 random(23);
    Maps maps;
    const auto fill = [&](std::vector<float>& map) {
        constexpr float odd[] = {0, 1e30F, -1e30F, NAN, INFINITY, -INFINITY, 3, -200};
        for (float& value : map) value = odd[random() % std::size(odd)];
    };
    fill(maps.heat);
    fill(maps.near);
    fill(maps.mid);
    const auto results = decode(maps, 20);
    ASSERT_EQ(results.size(), 4U);
    for (std::size_t i = 0; i < results[0].size(); i += 2) {
        EXPECT_TRUE(results[0][i] >= 0 && results[0][i] <= (map_height - 1) * stride);
        EXPECT_TRUE(results[0][i + 1] >= 0 && results[0][i + 1] <= (map_width - 1) * stride);
    }
}

}  // namespace
}  // namespace reef::test
