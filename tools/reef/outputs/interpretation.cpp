#include "outputs/interpretation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "outputs/model_text.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

using model::Op;

const model::Operator* producer_of(const model::Subgraph& graph, model::TensorIndex tensor) {
    for (const model::Operator& op : graph.operators) {
        if (std::ranges::find(op.outputs, tensor) != op.outputs.end()) return &op;
    }
    return nullptr;
}

/// The operator that decides what the tensor means.
const model::Operator* deciding_operator(const model::Subgraph& graph, model::TensorIndex tensor) {
    constexpr std::array transparent = {Op::quantize, Op::dequantize, Op::reshape, Op::squeeze};
    // A graph may be cyclic in its file; a chain cannot be longer than its operators.
    for (std::size_t steps = 0; steps <= graph.operators.size(); ++steps) {
        const model::Operator* op = producer_of(graph, tensor);
        if (op == nullptr || std::ranges::find(transparent, op->code.builtin) == transparent.end())
            return op;
        if (op->inputs.empty() || op->inputs[0] == model::absent_tensor) return nullptr;
        tensor = op->inputs[0];
    }
    return nullptr;
}

/// Real values of the operator's outputs, in its order, when all of them are graph outputs.
std::optional<std::vector<std::vector<double>>> outputs_of_custom(const runtime::Session& session,
                                                                  std::string_view name,
                                                                  std::size_t count) {
    const model::Subgraph& graph = session.graph();
    for (const model::Operator& op : graph.operators) {
        if (op.code.builtin != Op::custom || op.code.custom != name) continue;
        if (op.outputs.size() < count) return {};
        std::vector<std::vector<double>> values;
        for (std::size_t i = 0; i < count; ++i) {
            const auto found = std::ranges::find(graph.outputs, op.outputs[i]);
            if (found == graph.outputs.end()) return {};
            const auto position = static_cast<std::size_t>(found - graph.outputs.begin());
            auto numbers = real_values(graph.tensors[static_cast<std::size_t>(*found)],
                                       session.output(position));
            if (!numbers) return {};
            values.push_back(std::move(*numbers));
        }
        return values;
    }
    return {};
}

/// The operator's count output, limited to what its other outputs hold.
std::size_t limited_count(const std::vector<double>& count, std::size_t limit) {
    if (count.empty() || !(count[0] > 0)) return 0;
    return static_cast<std::size_t>(std::min(count[0], static_cast<double>(limit)));
}

/// "12  cat", "12: cat".
std::optional<std::pair<std::size_t, std::string>> numbered_label(std::string_view line) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{}) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (line.starts_with(':')) line.remove_prefix(1);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
    return std::pair(number, std::string(line.substr(begin)));
}

/// Each label in the place that its number says; as they are when a line has none, or they do not
/// rise.
std::vector<std::string> placed_by_number(std::vector<std::string> lines) {
    constexpr std::size_t most = 1 << 20;
    std::vector<std::string> labels;
    for (const std::string& line : lines) {
        auto label = numbered_label(line);
        const bool rises = label && label->first >= labels.size() && label->first < most;
        if (!rises || (labels.empty() && label->first > 1)) return lines;
        labels.resize(label->first);
        labels.push_back(std::move(label->second));
    }
    return labels;
}

/// The quantisation that TFLite demands of what SOFTMAX and LOGISTIC give: 0 to 255/256 in steps of
/// 1/256.
bool quantised_as_probability(const model::Tensor& tensor) {
    if (tensor.type != ElementType::uint8 && tensor.type != ElementType::int8) return false;
    const std::int64_t lowest = tensor.type == ElementType::int8 ? -128 : 0;
    return tensor.quantization && tensor.quantization->scale == std::vector<float>{1.0F / 256} &&
           tensor.quantization->zero_point == std::vector<std::int64_t>{lowest};
}

/// The only output of MoveNet: y, x and score of 17 points of one person.
std::optional<std::vector<Pose>> single_pose_of(const runtime::Session& session) {
    constexpr std::array<std::int32_t, 4> shape = {1, 1, 17, 3};
    const model::Subgraph& graph = session.graph();
    if (graph.outputs.size() != 1) return {};
    const auto& tensor = graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
    if (!std::ranges::equal(tensor.shape, shape)) return {};
    const auto values = real_values(tensor, session.output(0));
    if (!values) return {};
    Pose pose;
    for (std::size_t at = 0; at + 2 < values->size(); at += 3) {
        pose.keypoints.push_back({(*values)[at + 2], (*values)[at], (*values)[at + 1]});
        pose.score += (*values)[at + 2] / shape[2];
    }
    return std::vector{pose};
}

}  // namespace

Result<std::vector<std::string>> read_labels(const std::string& path) {
    const SharedBytes file = REEF_TRY(read_file(path));
    std::string_view text = as_text(file.view());
    std::vector<std::string> labels;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) break;
        labels.emplace_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (labels.empty()) return fail(Cause::bad_input, "holds no labels", path);
    return placed_by_number(std::move(labels));
}

std::vector<ClassScore> top_scores(std::span<const double> scores, std::size_t count) {
    std::vector<ClassScore> top(scores.size());
    for (std::size_t i = 0; i < top.size(); ++i) top[i] = {i, scores[i]};
    const auto before = [](const ClassScore& a, const ClassScore& b) {
        const bool a_nan = std::isnan(a.score);
        const bool b_nan = std::isnan(b.score);
        if (a_nan != b_nan) return b_nan;
        if (!a_nan && a.score != b.score) return a.score > b.score;
        return a.index < b.index;
    };
    count = std::min(count, top.size());
    std::ranges::partial_sort(top, top.begin() + static_cast<std::ptrdiff_t>(count), before);
    top.resize(count);
    return top;
}

OutputMeaning meaning_of(const model::Subgraph& graph, model::TensorIndex output) {
    const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(output)];
    const std::int64_t places = tensor.element_count();
    const model::Operator* op = deciding_operator(graph, output);
    const Op code = op == nullptr ? Op::custom : op->code.builtin;
    if (code == Op::arg_max && places > 1 && op->inputs[0] != model::absent_tensor) {
        const auto& scores = graph.tensors[static_cast<std::size_t>(op->inputs[0])];
        return {OutputKind::class_map, static_cast<std::size_t>(scores.element_count() / places),
                true};
    }
    if (!tensor.shape.empty() && tensor.shape.back() == places && places > 1) {
        return {OutputKind::classes, static_cast<std::size_t>(places),
                code == Op::softmax || code == Op::logistic ||
                    (op != nullptr && code == Op::custom && quantised_as_probability(tensor))};
    }
    return {};
}

std::optional<std::vector<Detection>> detections_of(const runtime::Session& session) {
    const auto values = outputs_of_custom(session, model::detection_postprocess_op, 4);
    if (!values) return {};
    const auto& [boxes, classes, scores] = std::tie((*values)[0], (*values)[1], (*values)[2]);
    const std::size_t limit = std::min({boxes.size() / 4, classes.size(), scores.size()});
    std::vector<Detection> detections(limited_count((*values)[3], limit));
    for (std::size_t i = 0; i < detections.size(); ++i) {
        const auto index = static_cast<std::size_t>(std::max(classes[i], 0.0));
        detections[i] = {
            index, scores[i], boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]};
    }
    return detections;
}

std::optional<std::vector<Pose>> poses_of(const runtime::Session& session) {
    const auto values = outputs_of_custom(session, model::posenet_decoder_op, 4);
    if (!values) return single_pose_of(session);
    const auto& [places, scores, pose_scores] = std::tie((*values)[0], (*values)[1], (*values)[2]);
    if (pose_scores.empty()) return std::vector<Pose>{};
    const std::size_t keypoints = scores.size() / pose_scores.size();
    if (places.size() != 2 * scores.size()) return {};
    std::vector<Pose> poses(limited_count((*values)[3], pose_scores.size()));
    for (std::size_t p = 0; p < poses.size(); ++p) {
        poses[p].score = pose_scores[p];
        for (std::size_t k = 0; k < keypoints; ++k) {
            const std::size_t at = p * keypoints + k;
            poses[p].keypoints.push_back({scores[at], places[2 * at], places[2 * at + 1]});
        }
    }
    return poses;
}

std::string keypoint_name(std::size_t index) {
    constexpr std::array<std::string_view, 17> names = {
        "nose",           "left eye",   "right eye",   "left ear",   "right ear",   "left shoulder",
        "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip",
        "right hip",      "left knee",  "right knee",  "left ankle", "right ankle"};
    return index < names.size() ? std::string(names[index]) : fmt::format("keypoint {}", index);
}

}  // namespace reef::tool
