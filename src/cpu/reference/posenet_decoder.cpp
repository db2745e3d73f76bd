// PosenetDecoderOp: people's poses from the maps of a PersonLab network (Papandreou et al. 2018,
// arXiv 1803.08225), step by step as Google's own decoder, whose results are the reference.
//
// Agreement with the stated poses of posenet_mobilenet_v1_075_353_481_16, from a picture resized as
// TFLite's RESIZE_BILINEAR does in float32: 64 of 68 coordinates in all six decimals given; pose
// scores to 0.001, keypoint scores to 0.008. The stated scores fit heatmaps that saturate at a
// logit of about 6.0 (this file's saturate at 6.7): inferred, a model quantised otherwise. Another
// root is then first among the saturated ones, which moves the other four coordinates by up to 3.3
// pixels.
//
// Inputs 1 x height x width x channels: heatmaps (17 logits), short offsets (17 y, 17 x), mid
// offsets (16 forward y, 16 forward x, 16 backward y, 16 backward x) and, in networks for masks,
// long offsets (17 y, 17 x). Outputs, float32, padded with zeros: keypoints (y, x in input pixels),
// keypoint scores, pose scores, pose count and, with long offsets, a mask for each pose. Google's
// decoder writes masks for maps of 33 x 33 cells only; those of other maps have the maps' size
// here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "cpu/prepare/custom_options.h"
#include "cpu/prepare/dequantized_input.h"
#include "cpu/prepare/kernels.h"

namespace reef::cpu {
namespace {

constexpr std::size_t keypoints = posenet_keypoints;
constexpr std::size_t edges = 16;
constexpr int refinement_steps = 5;
constexpr int mask_refinement_steps = 2;
constexpr std::int64_t most_cells = 1 << 18;

struct Edge {
    std::uint8_t parent;
    std::uint8_t child;
};
/// Keypoints: 0 nose, 1/2 left/right eye, 3/4 ear, 5/6 shoulder, 7/8 elbow, 9/10 wrist, 11/12 hip,
/// 13/14 knee, 15/16 ankle. Each edge has a mid offset from parent to child and one back.
constexpr std::array<Edge, edges> skeleton{{{0, 1},
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

/// In cells of the maps.
struct Point {
    float y = 0;
    float x = 0;
};

float squared_distance(Point a, Point b) {
    const float dy = b.y - a.y;
    const float dx = b.x - a.x;
    return dy * dy + dx * dx;
}

struct Keypoint {
    Point point;
    std::uint32_t id = 0;
    float score = 0;  ///< a logit
    /// The order of a heap whose front has the highest score.
    friend bool operator<(const Keypoint& a, const Keypoint& b) { return a.score < b.score; }
};

struct Pose {
    std::array<Point, keypoints> points;
    std::array<float, keypoints> scores;
    float score = 0;
};

/// NaN goes to `low`, so that a position always lies on the map.
float clamped(float value, float low, float high) {
    return value >= low ? (value <= high ? value : high) : low;
}

/// One input map, dequantised where it is read.
struct Map {
    DequantizedInput input;
    std::int32_t height = 0, width = 0;
    std::size_t channels = 0;

    [[nodiscard]] float at(const std::byte* data, std::int32_t y, std::int32_t x,
                           std::size_t c) const {
        const auto cell = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                          static_cast<std::size_t>(x);
        return input.value(data, cell * channels + c);
    }

    [[nodiscard]] Point inside(float y, float x) const {
        return {clamped(y, 0, static_cast<float>(height - 1)),
                clamped(x, 0, static_cast<float>(width - 1))};
    }

    /// Bilinear between the four cells around a point that lies inside.
    [[nodiscard]] float sample(const std::byte* data, Point p, std::size_t c) const {
        const auto y0 = static_cast<std::int32_t>(std::floor(p.y));
        const auto y1 = static_cast<std::int32_t>(std::ceil(p.y));
        const auto x0 = static_cast<std::int32_t>(std::floor(p.x));
        const auto x1 = static_cast<std::int32_t>(std::ceil(p.x));
        const float fy = p.y - static_cast<float>(y0);
        const float fx = p.x - static_cast<float>(x0);
        return (1 - fy) * ((1 - fx) * at(data, y0, x0, c) + fx * at(data, y0, x1, c)) +
               fy * ((1 - fx) * at(data, y1, x0, c) + fx * at(data, y1, x1, c));
    }
};

struct PosenetParameters {
    PosenetOptions options;
    Map heatmaps, short_offsets, mid_offsets;
    std::optional<Map> long_offsets;  ///< when masks are wanted
};

class PosenetKernel final : public Kernel {
  public:
    explicit PosenetKernel(const PosenetParameters& given) : p_(given) {
        const auto cells = static_cast<std::size_t>(p_.heatmaps.height) *
                           static_cast<std::size_t>(p_.heatmaps.width);
        roots_.reserve(cells * keypoints);
        frontier_.reserve(2 * edges + 1);
        poses_.reserve(max_poses());
        order_.reserve(max_poses());
        const float radius = p_.options.nms_radius / static_cast<float>(p_.options.stride);
        squared_radius_ = radius * radius;
        const double odds = 1.0 / (static_cast<double>(p_.options.score_threshold) + 1e-6) - 1.0;
        lowest_logit_ = static_cast<float>(-std::log(odds));
    }

    [[nodiscard]] std::string name() const override { return "posenet_decoder reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        find_roots(frame);
        poses_.clear();
        while (poses_.size() < max_poses() && !roots_.empty()) {
            std::pop_heap(roots_.begin(), roots_.end());
            const Keypoint root = roots_.back();
            roots_.pop_back();
            if (!is_new(root)) continue;
            Pose pose = decode_pose(frame, root);
            pose.score = mean_score(pose, {});
            if (pose.score >= p_.options.score_threshold) poses_.push_back(pose);
        }
        sort_poses();
        rescore_overlapping();
        sort_poses();
        write(frame);
        if (p_.long_offsets) write_masks(frame);
        return {};
    }

  private:
    static constexpr std::size_t heatmaps_at = 0, short_offsets_at = 1, mid_offsets_at = 2,
                                 long_offsets_at = 3;

    [[nodiscard]] std::size_t max_poses() const {
        return static_cast<std::size_t>(p_.options.max_detections);
    }

    [[nodiscard]] bool is_local_maximum(const std::byte* data, std::int32_t y, std::int32_t x,
                                        std::size_t id, float score) const {
        const Map& map = p_.heatmaps;
        for (std::int32_t v = std::max(y - 1, 0); v < std::min(y + 2, map.height); ++v)
            for (std::int32_t u = std::max(x - 1, 0); u < std::min(x + 2, map.width); ++u)
                if (map.at(data, v, u, id) > score) return false;
        return true;
    }

    /// Cells that score enough and are not below a neighbour, moved by their short offset.
    void find_roots(const Frame& frame) {
        roots_.clear();
        const std::byte* heat = frame.inputs[heatmaps_at];
        const std::byte* offsets = frame.inputs[short_offsets_at];
        for (std::int32_t y = 0; y < p_.heatmaps.height; ++y) {
            for (std::int32_t x = 0; x < p_.heatmaps.width; ++x) {
                for (std::size_t id = 0; id < keypoints; ++id) {
                    const float score = p_.heatmaps.at(heat, y, x, id);
                    if (!(score >= lowest_logit_)) continue;
                    if (!is_local_maximum(heat, y, x, id, score)) continue;
                    const float dy = p_.short_offsets.at(offsets, y, x, id);
                    const float dx = p_.short_offsets.at(offsets, y, x, id + keypoints);
                    const Point point =
                        p_.heatmaps.inside(static_cast<float>(y) + dy, static_cast<float>(x) + dx);
                    roots_.push_back({point, static_cast<std::uint32_t>(id), score});
                    std::push_heap(roots_.begin(), roots_.end());
                }
            }
        }
    }

    [[nodiscard]] bool is_new(const Keypoint& root) const {
        return std::ranges::none_of(poses_, [&](const Pose& pose) {
            return squared_distance(root.point, pose.points[root.id]) <= squared_radius_;
        });
    }

    /// From a keypoint along an edge (0 to 15 forward, 16 to 31 backward) to its neighbour.
    [[nodiscard]] Point follow(const Frame& frame, Point from, std::size_t edge,
                               std::size_t target) const {
        // Forward y and x lie before backward y and x.
        const std::size_t y_channel = edge >= edges ? edge + edges : edge;
        const std::byte* mid = frame.inputs[mid_offsets_at];
        const std::byte* near = frame.inputs[short_offsets_at];
        Point p = p_.heatmaps.inside(from.y + p_.mid_offsets.sample(mid, from, y_channel),
                                     from.x + p_.mid_offsets.sample(mid, from, y_channel + edges));
        for (int i = 0; i < refinement_steps; ++i)
            p = p_.heatmaps.inside(p.y + p_.short_offsets.sample(near, p, target),
                                   p.x + p_.short_offsets.sample(near, p, target + keypoints));
        return p;
    }

    [[nodiscard]] Keypoint scored(const Frame& frame, Point point, std::size_t id) const {
        float score = p_.heatmaps.sample(frame.inputs[heatmaps_at], point, id);
        if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
        return {point, static_cast<std::uint32_t>(id), score};
    }

    /// Walks the skeleton from the root, always from the best scored keypoint reached so far.
    Pose decode_pose(const Frame& frame, const Keypoint& root) {
        Pose pose;
        std::array<bool, keypoints> done{};
        frontier_.clear();
        frontier_.push_back(scored(frame, root.point, root.id));
        while (!frontier_.empty()) {
            std::pop_heap(frontier_.begin(), frontier_.end());
            const Keypoint from = frontier_.back();
            frontier_.pop_back();
            if (done[from.id]) continue;
            done[from.id] = true;
            pose.points[from.id] = from.point;
            pose.scores[from.id] = 1.0F / (1.0F + std::exp(-from.score));
            for (std::size_t edge = 0; edge < 2 * edges; ++edge) {
                const bool forward = edge < edges;
                const Edge& e = skeleton[edge % edges];
                if ((forward ? e.parent : e.child) != from.id) continue;
                const std::size_t target = forward ? e.child : e.parent;
                if (done[target]) continue;
                frontier_.push_back(scored(frame, follow(frame, from.point, edge, target), target));
                std::push_heap(frontier_.begin(), frontier_.end());
            }
        }
        return pose;
    }

    /// Keypoint scores without the hidden ones, summed in descending order, over all 17.
    static float mean_score(const Pose& pose, const std::array<bool, keypoints>& hidden) {
        std::array<std::uint8_t, keypoints> order{};
        std::iota(order.begin(), order.end(), std::uint8_t{0});
        std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
            return pose.scores[a] != pose.scores[b] ? pose.scores[a] > pose.scores[b] : a < b;
        });
        float sum = 0;
        for (const std::uint8_t k : order)
            if (!hidden[k]) sum += pose.scores[k];
        return sum / static_cast<float>(keypoints);
    }

    /// Orders poses_ by descending score through order_; equal scores keep their order.
    void sort_poses() {
        order_.resize(poses_.size());
        std::iota(order_.begin(), order_.end(), 0U);
        std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
            return poses_[a].score != poses_[b].score ? poses_[a].score > poses_[b].score : a < b;
        });
    }

    /// Keypoints that lie on the same keypoint of a better pose no longer count.
    void rescore_overlapping() {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            Pose& pose = poses_[order_[i]];
            std::array<bool, keypoints> hidden{};
            for (std::size_t j = 0; j < i; ++j)
                for (std::size_t k = 0; k < keypoints; ++k)
                    hidden[k] = hidden[k] ||
                                squared_distance(pose.points[k], poses_[order_[j]].points[k]) <=
                                    squared_radius_;
            pose.score = mean_score(pose, hidden);
        }
    }

    void write(const Frame& frame) const {
        const auto stride = static_cast<float>(p_.options.stride);
        float* points = frame.out<float>(0);
        float* scores = frame.out<float>(1);
        std::fill_n(points, max_poses() * keypoints * 2, 0.0F);
        std::fill_n(scores, max_poses() * keypoints, 0.0F);
        std::fill_n(frame.out<float>(2), max_poses(), 0.0F);
        std::size_t count = 0;
        for (const std::uint32_t i : order_) {
            const Pose& pose = poses_[i];
            if (pose.score < p_.options.score_threshold) break;
            for (const Point& point : pose.points) {
                *points++ = point.y * stride;
                *points++ = point.x * stride;
            }
            scores = std::ranges::copy(pose.scores, scores).out;
            frame.out<float>(2)[count++] = pose.score;
        }
        *frame.out<float>(3) = static_cast<float>(count);
    }

    /// Where a cell's long offsets, followed three times, see a keypoint; in input pixels.
    [[nodiscard]] Point seen_from(const std::byte* data, std::int32_t y, std::int32_t x,
                                  std::size_t id) const {
        const Map& map = *p_.long_offsets;
        Point p{static_cast<float>(y), static_cast<float>(x)};
        for (int i = 0; i <= mask_refinement_steps; ++i)
            p = map.inside(p.y + map.sample(data, p, id),
                           p.x + map.sample(data, p, id + keypoints));
        const auto stride = static_cast<float>(p_.options.stride);
        return {p.y * stride, p.x * stride};
    }

    /// The written pose whose keypoints lie closest to what a cell sees; the first among equals.
    [[nodiscard]] std::size_t nearest_pose(const Frame& frame, std::int32_t y, std::int32_t x,
                                           std::size_t poses) const {
        std::array<Point, keypoints> seen;
        for (std::size_t k = 0; k < keypoints; ++k)
            seen[k] = seen_from(frame.inputs[long_offsets_at], y, x, k);
        std::size_t nearest = 0;
        float least = 0;
        const float* points = frame.out<float>(0);
        for (std::size_t pose = 0; pose < poses; ++pose) {
            float sum = 0;
            for (std::size_t k = 0; k < keypoints; ++k, points += 2)
                sum += squared_distance(seen[k], {points[0], points[1]});
            if (pose > 0 && !(sum < least)) continue;
            nearest = pose;
            least = sum;
        }
        return nearest;
    }

    /// Every cell belongs to one pose. Follows write().
    void write_masks(const Frame& frame) const {
        const Map& map = *p_.long_offsets;
        const std::size_t cells =
            static_cast<std::size_t>(map.height) * static_cast<std::size_t>(map.width);
        float* masks = frame.out<float>(4);
        std::fill_n(masks, max_poses() * cells, 0.0F);
        const auto poses = static_cast<std::size_t>(*frame.out<float>(3));
        if (poses == 0) return;
        std::size_t cell = 0;
        for (std::int32_t y = 0; y < map.height; ++y)
            for (std::int32_t x = 0; x < map.width; ++x, ++cell)
                masks[nearest_pose(frame, y, x, poses) * cells + cell] = 1.0F;
    }

    PosenetParameters p_;
    float squared_radius_ = 0;  ///< in cells
    float lowest_logit_ = 0;
    std::vector<Keypoint> roots_, frontier_;  ///< heaps
    std::vector<Pose> poses_;
    std::vector<std::uint32_t> order_;
};

/// `factor` scales the values: offsets are in pixels and become cells.
Result<Map> check_map(const OperatorView& op, std::size_t i, std::size_t channels, float factor) {
    const std::string what = fmt::format("input {}", i);
    const auto& shape = op.input(i).shape;
    Map map{.input = REEF_TRY(DequantizedInput::of(op.input(i), what.c_str()))};
    map.input.scale *= factor;
    if (shape.size() != 4 || shape[0] != 1 || shape[3] != static_cast<std::int32_t>(channels))
        return fail(Cause::bad_input, fmt::format("{} is {}, not 1 x height x width x {}", what,
                                                  model::shape_text(shape), channels));
    const auto& first = op.input(0).shape;
    if (shape[1] != first[1] || shape[2] != first[2])
        return fail(Cause::bad_input,
                    fmt::format("{} is {}, the heatmaps are {}", what, model::shape_text(shape),
                                model::shape_text(first)));
    if (shape[1] < 1 || shape[2] < 1 || static_cast<std::int64_t>(shape[1]) * shape[2] > most_cells)
        return fail(Cause::unsupported, fmt::format("maps of {}x{} cells, not 1 to {}", shape[1],
                                                    shape[2], most_cells));
    map.height = shape[1];
    map.width = shape[2];
    map.channels = channels;
    return map;
}

}  // namespace

PreparedKernel prepare_posenet_decoder(const OperatorView& op, const PrepareOptions& /*options*/) {
    const bool masks = op.input_count() == 4;
    REEF_CHECK(op.expect_counts(3, 4, masks ? 5 : 4));
    PosenetParameters p;
    p.options = REEF_TRY(posenet_options(op.op()));
    const float cells_per_pixel = static_cast<float>(1.0 / p.options.stride);
    p.heatmaps = REEF_TRY(check_map(op, 0, keypoints, 1));
    p.short_offsets = REEF_TRY(check_map(op, 1, 2 * keypoints, cells_per_pixel));
    p.mid_offsets = REEF_TRY(check_map(op, 2, 4 * edges, cells_per_pixel));
    if (masks) p.long_offsets = REEF_TRY(check_map(op, 3, 2 * keypoints, cells_per_pixel));
    REEF_CHECK(expect_custom_outputs(op));
    return std::make_unique<PosenetKernel>(p);
}

}  // namespace reef::cpu
