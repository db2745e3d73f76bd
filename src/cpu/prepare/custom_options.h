// The options of the custom operators that Reef runs, and the shapes their outputs get from them.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/prepare/kernel.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// TFLite_Detection_PostProcess.
struct DetectionOptions {
    std::int32_t max_detections = 0;
    std::int32_t max_classes_per_detection = 0;  ///< without regular NMS
    std::int32_t detections_per_class = 100;     ///< with regular NMS
    std::int32_t num_classes = 0;                ///< without the background class
    bool use_regular_nms = false;                ///< suppression class by class
    float score_threshold = 0;
    float iou_threshold = 0;
    float y_scale = 0, x_scale = 0, h_scale = 0, w_scale = 0;
};
/// Errors: bad_input for missing or senseless values.
[[nodiscard]] Result<DetectionOptions> detection_options(const model::Operator& op);

/// PosenetDecoderOp.
struct PosenetOptions {
    std::int32_t max_detections = 0;
    float score_threshold = 0;
    std::int32_t stride = 0;  ///< input pixels per step of the maps
    float nms_radius = 0;     ///< in input pixels
};
[[nodiscard]] Result<PosenetOptions> posenet_options(const model::Operator& op);

inline constexpr std::int32_t posenet_keypoints = 17;

/// Shapes of the outputs in their order; empty for operators whose files give them.
using OutputShapes = std::vector<std::vector<std::int32_t>>;
/// Precondition: `op` is one of the graph's.
[[nodiscard]] Result<OutputShapes> custom_output_shapes(const model::Subgraph& graph,
                                                        const model::Operator& op);

/// Errors unless the outputs are float32 tensors of custom_output_shapes().
[[nodiscard]] Status expect_custom_outputs(const OperatorView& op);

/// Fills in the shapes of custom operators' outputs that the file leaves open (TFLite computes them
/// when it prepares the operator).
[[nodiscard]] Status resolve_custom_output_shapes(model::Subgraph& graph);

}  // namespace reef::cpu
