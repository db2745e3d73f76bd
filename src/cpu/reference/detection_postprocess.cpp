// TFLite_Detection_PostProcess: boxes from encodings relative to anchors, then non-maximum
// suppression over the classes together ("fast") or class by class ("regular").
//
// Inputs: box encodings 1 x boxes x 4+ (y, x, height, width first), scores 1 x boxes x classes
// (with or without a background class in front), anchors boxes x 4. Outputs, padded with zeros:
// boxes (y_min, x_min, y_max, x_max), classes, scores, count; all float32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/prepare/custom_options.h"
#include "cpu/prepare/dequantized_input.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/non_max_suppression.h"

namespace reef::cpu {
namespace {

constexpr std::int64_t most_boxes = 1 << 17;
constexpr std::int64_t most_scores = 1 << 26;

struct Detection {
    DetectionOptions options;
    DequantizedInput encodings, scores, anchors;
    std::size_t boxes = 0;
    std::size_t encoding_length = 0;
    std::size_t columns = 0;     ///< of the scores, with the background class
    std::size_t background = 0;  ///< 1 when column 0 is the background class
    std::size_t entries = 0;     ///< length of the outputs
};

/// The `count` largest values' indices in front, in descending order. Ties fall as the standard
/// library's partial_sort leaves them, which is what TFLite does.
void partial_arg_sort(std::span<const float> values, std::size_t count,
                      std::span<std::uint32_t> indices) {
    if (count == 1) {
        indices[0] = static_cast<std::uint32_t>(std::ranges::max_element(values) - values.begin());
        return;
    }
    std::iota(indices.begin(), indices.end(), 0U);
    std::partial_sort(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count),
                      indices.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
}

class DetectionKernel final : public Kernel {
  public:
    explicit DetectionKernel(const Detection& detection)
        : d_(detection),
          selection_(d_.boxes, d_.options.score_threshold, d_.options.iou_threshold),
          boxes_(d_.boxes),
          box_scores_(d_.boxes) {
        const auto classes = static_cast<std::size_t>(d_.options.num_classes);
        if (d_.options.use_regular_nms) {
            found_.reserve(max_detections());
            best_.reserve(max_detections());
        } else {
            class_scores_.resize(classes);
            order_.resize(classes);
            top_classes_.resize(d_.boxes * classes_per_box());
        }
    }

    [[nodiscard]] std::string name() const override {
        return d_.options.use_regular_nms ? "detection_postprocess regular"
                                          : "detection_postprocess fast";
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        REEF_CHECK(decode_boxes(frame));
        std::fill_n(frame.out<float>(0), d_.entries * 4, 0.0F);
        std::fill_n(frame.out<float>(1), d_.entries, 0.0F);
        std::fill_n(frame.out<float>(2), d_.entries, 0.0F);
        const std::size_t count = d_.options.use_regular_nms ? run_regular(frame) : run_fast(frame);
        *frame.out<float>(3) = static_cast<float>(count);
        return {};
    }

  private:
    struct Found {
        std::uint32_t box = 0;
        std::uint32_t label = 0;
        float score = 0;
    };

    [[nodiscard]] std::size_t max_detections() const {
        return static_cast<std::size_t>(d_.options.max_detections);
    }
    [[nodiscard]] std::size_t classes_per_box() const {
        return static_cast<std::size_t>(
            std::min(d_.options.max_classes_per_detection, d_.options.num_classes));
    }
    [[nodiscard]] float score(const Frame& frame, std::size_t box, std::size_t label) const {
        return d_.scores.value(frame.inputs[1], box * d_.columns + d_.background + label);
    }

    Status decode_boxes(const Frame& frame) {
        for (std::size_t i = 0; i < d_.boxes; ++i) {
            const auto encoded = [&](std::size_t k) -> double {
                return d_.encodings.value(frame.inputs[0], i * d_.encoding_length + k);
            };
            const auto anchor = [&](std::size_t k) -> double {
                return d_.anchors.value(frame.inputs[2], i * 4 + k);
            };
            const auto center = [&](std::size_t k, float scale) {
                return static_cast<float>(encoded(k) / scale * anchor(k + 2) + anchor(k));
            };
            const auto half = [&](std::size_t k, float scale) {
                return static_cast<float>(0.5 * std::exp(encoded(k) / scale) * anchor(k));
            };
            const float y = center(0, d_.options.y_scale);
            const float x = center(1, d_.options.x_scale);
            const float half_height = half(2, d_.options.h_scale);
            const float half_width = half(3, d_.options.w_scale);
            boxes_[i] = {y - half_height, x - half_width, y + half_height, x + half_width};
            if (boxes_[i].y_min > boxes_[i].y_max || boxes_[i].x_min > boxes_[i].x_max)
                return fail(Cause::bad_input,
                            fmt::format("box {} has a negative height or width", i));
        }
        return {};
    }

    void put(const Frame& frame, std::size_t entry, const Found& found) const {
        const Box& box = boxes_[found.box];
        float* corners = frame.out<float>(0) + entry * 4;
        corners[0] = box.y_min;
        corners[1] = box.x_min;
        corners[2] = box.y_max;
        corners[3] = box.x_max;
        frame.out<float>(1)[entry] = static_cast<float>(found.label);
        frame.out<float>(2)[entry] = found.score;
    }

    /// One suppression for all classes, by each box's best score; survivors report their best
    /// classes. Returns how many boxes survived.
    std::size_t run_fast(const Frame& frame) {
        const std::size_t top = classes_per_box();
        for (std::size_t box = 0; box < d_.boxes; ++box) {
            for (std::size_t label = 0; label < class_scores_.size(); ++label)
                class_scores_[label] = score(frame, box, label);
            partial_arg_sort(class_scores_, top, order_);
            std::copy_n(order_.begin(), top,
                        top_classes_.begin() + static_cast<std::ptrdiff_t>(box * top));
            box_scores_[box] = class_scores_[order_[0]];
        }
        const auto selected = selection_.select(boxes_, box_scores_, max_detections());
        std::size_t entry = 0;
        for (const std::uint32_t box : selected) {
            for (std::size_t k = 0; k < top; ++k) {
                const std::uint32_t label = top_classes_[box * top + k];
                put(frame, entry + k, {box, label, score(frame, box, label)});
            }
            entry += static_cast<std::size_t>(d_.options.max_classes_per_detection);
        }
        return selected.size();
    }

    /// A suppression per class; after each, the best max_detections of all classes so far stay.
    std::size_t run_regular(const Frame& frame) {
        found_.clear();
        const auto classes = static_cast<std::uint32_t>(d_.options.num_classes);
        for (std::uint32_t label = 0; label < classes; ++label) {
            for (std::size_t box = 0; box < d_.boxes; ++box)
                box_scores_[box] = score(frame, box, label);
            take_in(selection_.select(boxes_, box_scores_,
                                      static_cast<std::size_t>(d_.options.detections_per_class)),
                    label);
        }
        for (std::size_t entry = 0; entry < found_.size(); ++entry)
            put(frame, entry, found_[entry]);
        return found_.size();
    }

    /// Of equal scores the later class's comes first.
    void take_in(std::span<const std::uint32_t> selected, std::uint32_t label) {
        best_.clear();
        std::size_t old = 0, taken = 0;
        while (best_.size() < max_detections() &&
               (old < found_.size() || taken < selected.size())) {
            const bool is_new =
                taken < selected.size() &&
                (old == found_.size() || box_scores_[selected[taken]] >= found_[old].score);
            if (is_new) {
                const std::uint32_t box = selected[taken++];
                best_.push_back({box, label, box_scores_[box]});
            } else {
                best_.push_back(found_[old++]);
            }
        }
        found_.swap(best_);
    }

    Detection d_;
    BoxSelection selection_;
    std::vector<Box> boxes_;
    std::vector<float> box_scores_;
    std::vector<std::uint32_t> order_;
    // Fast suppression.
    std::vector<float> class_scores_;
    std::vector<std::uint32_t> top_classes_;  ///< boxes x classes_per_box()
    // Regular suppression.
    std::vector<Found> found_, best_;
};

Status check_sizes(const OperatorView& op, Detection& d) {
    const auto& encodings = op.input(0).shape;
    const auto& scores = op.input(1).shape;
    if (encodings.size() != 3 || encodings[0] != 1 || encodings[1] < 1 || encodings[2] < 4)
        return fail(Cause::bad_input, fmt::format("the box encodings are {}, not 1 x boxes x 4",
                                                  model::shape_text(encodings)));
    if (scores.size() != 3 || scores[0] != 1 || scores[1] != encodings[1])
        return fail(Cause::bad_input, fmt::format("the scores are {}, not 1 x {} x classes",
                                                  model::shape_text(scores), encodings[1]));
    if (op.input(2).shape != std::vector<std::int32_t>{encodings[1], 4})
        return fail(Cause::bad_input,
                    fmt::format("the anchors are {}, not {}x4",
                                model::shape_text(op.input(2).shape), encodings[1]));
    const std::int32_t extra = scores[2] - d.options.num_classes;
    if (extra != 0 && extra != 1)
        return fail(Cause::bad_input, fmt::format("{} scores per box for {} classes", scores[2],
                                                  d.options.num_classes));
    if (encodings[1] > most_boxes || static_cast<std::int64_t>(scores[1]) * scores[2] > most_scores)
        return fail(Cause::unsupported,
                    fmt::format("{} boxes of {} classes: more than {} boxes or {} scores",
                                encodings[1], scores[2], most_boxes, most_scores));
    d.boxes = static_cast<std::size_t>(encodings[1]);
    d.encoding_length = static_cast<std::size_t>(encodings[2]);
    d.columns = static_cast<std::size_t>(scores[2]);
    d.background = static_cast<std::size_t>(extra);
    return {};
}

}  // namespace

PreparedKernel prepare_detection_postprocess(const OperatorView& op,
                                             const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(3, 3, 4));
    Detection d;
    d.options = REEF_TRY(detection_options(op.op()));
    d.encodings = REEF_TRY(DequantizedInput::of(op.input(0), "input 0"));
    d.scores = REEF_TRY(DequantizedInput::of(op.input(1), "input 1"));
    d.anchors = REEF_TRY(DequantizedInput::of(op.input(2), "input 2"));
    REEF_CHECK(check_sizes(op, d));
    REEF_CHECK(expect_custom_outputs(op));
    d.entries = static_cast<std::size_t>(op.output(1).shape[1]);
    return std::make_unique<DetectionKernel>(d);
}

}  // namespace reef::cpu
