#include "cpu/prepare/custom_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/quantized.h"
#include "reef/model/flexbuffer.h"

namespace reef::cpu {
namespace {

constexpr std::int64_t largest_count = 1 << 16;

/// An integer from 1 to 65536.
Result<std::int32_t> count(const model::FlexMap& options, std::string_view key) {
    const std::int64_t value = REEF_TRY(options.integer(key));
    if (value < 1 || value > largest_count)
        return fail(Cause::bad_input,
                    fmt::format("option '{}' is {}, not 1 to {}", key, value, largest_count));
    return static_cast<std::int32_t>(value);
}

Result<float> real(const model::FlexMap& options, std::string_view key) {
    const auto value = static_cast<float>(REEF_TRY(options.real(key)));
    if (!std::isfinite(value))
        return fail(Cause::bad_input, fmt::format("option '{}' is {}", key, value));
    return value;
}

Result<float> positive(const model::FlexMap& options, std::string_view key) {
    const float value = REEF_TRY(real(options, key));
    if (!(value > 0))
        return fail(Cause::bad_input, fmt::format("option '{}' is {}, not above 0", key, value));
    return value;
}

bool given(const model::FlexMap& options, std::string_view key) {
    const model::FlexValue* value = options.find(key);
    return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

}  // namespace

Result<DetectionOptions> detection_options(const model::Operator& op) {
    const auto map = REEF_TRY(model::read_flexbuffer(op.custom_options.view()));
    DetectionOptions options;
    options.max_detections = REEF_TRY(count(map, "max_detections"));
    options.max_classes_per_detection = REEF_TRY(count(map, "max_classes_per_detection"));
    if (given(map, "detections_per_class"))
        options.detections_per_class = REEF_TRY(count(map, "detections_per_class"));
    if (given(map, "use_regular_nms"))
        options.use_regular_nms = REEF_TRY(map.boolean("use_regular_nms"));
    options.num_classes = REEF_TRY(count(map, "num_classes"));
    options.score_threshold = REEF_TRY(real(map, "nms_score_threshold"));
    options.iou_threshold = REEF_TRY(positive(map, "nms_iou_threshold"));
    if (options.iou_threshold > 1)
        return fail(Cause::bad_input, fmt::format("option 'nms_iou_threshold' is {}, above 1",
                                                  options.iou_threshold));
    options.y_scale = REEF_TRY(positive(map, "y_scale"));
    options.x_scale = REEF_TRY(positive(map, "x_scale"));
    options.h_scale = REEF_TRY(positive(map, "h_scale"));
    options.w_scale = REEF_TRY(positive(map, "w_scale"));
    return options;
}

Result<PosenetOptions> posenet_options(const model::Operator& op) {
    const auto map = REEF_TRY(model::read_flexbuffer(op.custom_options.view()));
    PosenetOptions options;
    options.max_detections = REEF_TRY(count(map, "max_detections"));
    options.score_threshold = REEF_TRY(real(map, "score_threshold"));
    if (!(options.score_threshold >= 0 && options.score_threshold < 1))
        return fail(Cause::bad_input, fmt::format("option 'score_threshold' is {}, not in [0, 1)",
                                                  options.score_threshold));
    options.stride = REEF_TRY(count(map, "stride"));
    options.nms_radius = REEF_TRY(real(map, "nms_radius"));
    return options;
}

Result<OutputShapes> custom_output_shapes(const model::Subgraph& graph, const model::Operator& op) {
    if (op.code.builtin != model::Op::custom) return OutputShapes{};
    if (op.code.custom == model::detection_postprocess_op) {
        const auto options = REEF_TRY(detection_options(op));
        const std::int64_t entries =
            static_cast<std::int64_t>(options.max_detections) * options.max_classes_per_detection;
        if (entries > largest_count)
            return fail(Cause::unsupported,
                        fmt::format("{} detections, more than {}", entries, largest_count));
        const auto n = static_cast<std::int32_t>(entries);
        return OutputShapes{{1, n, 4}, {1, n}, {1, n}, {1}};
    }
    if (op.code.custom == model::posenet_decoder_op) {
        const std::int32_t n = REEF_TRY(posenet_options(op)).max_detections;
        OutputShapes shapes{{1, n, posenet_keypoints, 2}, {1, n, posenet_keypoints}, {1, n}, {1}};
        if (op.outputs.size() > shapes.size() && op.inputs.size() > 3 && op.inputs[3] >= 0) {
            const model::Tensor& maps = graph.tensors[static_cast<std::size_t>(op.inputs[3])];
            if (maps.shape.size() == 4) shapes.push_back({1, n, maps.shape[1], maps.shape[2]});
        }
        return shapes;
    }
    return OutputShapes{};
}

Status expect_custom_outputs(const OperatorView& op) {
    const auto shapes = REEF_TRY(custom_output_shapes(op.graph(), op.op()));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const std::string what = fmt::format("output {}", i);
        REEF_CHECK(expect_type(op.output(i), what.c_str(), {ElementType::float32}));
        REEF_CHECK(expect_shape(op.output(i), what.c_str(), shapes[i]));
    }
    return {};
}

Status resolve_custom_output_shapes(model::Subgraph& graph) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        const auto shapes =
            REEF_TRY(in_place(custom_output_shapes(graph, op), model::place_of(graph, i)));
        for (std::size_t k = 0; k < std::min(op.outputs.size(), shapes.size()); ++k) {
            if (op.outputs[k] == model::absent_tensor) continue;
            model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(op.outputs[k])];
            if (tensor.shape.empty()) tensor.shape = shapes[k];
        }
    }
    return {};
}

}  // namespace reef::cpu
