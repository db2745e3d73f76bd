// What a network's outputs mean, as far as the graph says it: classes, class maps, detections,
// poses.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"
#include "reef/runtime/session.h"

namespace reef::tool {

/// One label per line; an empty line ends the list, so that files may end in remarks. Lines that
/// all begin with rising numbers, from 0 or 1 on ("0  person", "12: cat") give the labels of those
/// classes; classes in between have an empty one.
[[nodiscard]] Result<std::vector<std::string>> read_labels(const std::string& path);

struct ClassScore {
    std::size_t index = 0;
    double score = 0;
};
/// The `count` highest, falling; of equal scores the lower index first. NaN comes last.
[[nodiscard]] std::vector<ClassScore> top_scores(std::span<const double> scores, std::size_t count);

enum class OutputKind : std::uint8_t {
    classes,    ///< one score per class
    class_map,  ///< one class number per place
    values,     ///< anything else
};

struct OutputMeaning {
    OutputKind kind = OutputKind::values;
    std::size_t class_count = 0;  ///< 0 for values
    bool certain = false;         ///< the operators say so, not the shape alone
};

/// classes: [N] or [1, ..., 1, N] with N > 1; certain behind SOFTMAX or LOGISTIC, looking through
/// QUANTIZE, DEQUANTIZE, RESHAPE and SQUEEZE, and behind a custom operator, such as a compiled one,
/// when the output is quantised as those two must be. class_map: behind ARG_MAX, with more than one
/// place.
[[nodiscard]] OutputMeaning meaning_of(const model::Subgraph& graph, model::TensorIndex output);

/// One object found by TFLite_Detection_PostProcess. The box is in parts of the picture.
struct Detection {
    std::size_t class_index = 0;
    double score = 0;
    double top = 0, left = 0, bottom = 0, right = 0;
};
/// Nothing when the graph's outputs are not those of that operator.
[[nodiscard]] std::optional<std::vector<Detection>> detections_of(const runtime::Session& session);

/// One person found by PosenetDecoderOp, with coordinates as the operator gives them, or by MoveNet
/// (an only output of 1x1x17x3), in parts of the picture and with the mean of the points' scores.
struct Keypoint {
    double score = 0;
    double y = 0, x = 0;
};
struct Pose {
    double score = 0;
    std::vector<Keypoint> keypoints;
};
[[nodiscard]] std::optional<std::vector<Pose>> poses_of(const runtime::Session& session);

/// "nose" for 0 and so on, for the 17 keypoints of the COCO data set; "keypoint 17" beyond.
[[nodiscard]] std::string keypoint_name(std::size_t index);

}  // namespace reef::tool
