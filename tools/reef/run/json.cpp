#include <algorithm>

#include "inputs/model_session.h"
#include "outputs/model_text.h"
#include "run/result.h"

namespace reef::tool {
namespace {

Json labelled(Json entry, const std::vector<std::string>& labels, std::size_t index) {
    if (index < labels.size()) entry["label"] = labels[index];
    return entry;
}

Json classes_json(const std::vector<double>& scores, const RunReport& report, bool with_labels) {
    Json top = Json::array();
    for (const ClassScore& entry : top_scores(scores, report.top)) {
        Json json{{"class", entry.index}, {"score", entry.score}};
        top.push_back(with_labels ? labelled(std::move(json), report.labels, entry.index)
                                  : std::move(json));
    }
    return top;
}

Json areas_json(const std::vector<double>& classes, const RunReport& report) {
    Json areas = Json::array();
    for (const ClassArea& area : areas_of(classes)) {
        areas.push_back(
            labelled({{"class", area.index}, {"places", area.places}}, report.labels, area.index));
    }
    return areas;
}

Json output_json(const runtime::Session& session, const RunReport& report, std::size_t position) {
    const model::Subgraph& graph = session.graph();
    const model::TensorIndex index = graph.outputs[position];
    Json json = tensor_json(graph, index);
    const auto values =
        real_values(graph.tensors[static_cast<std::size_t>(index)], session.output(position));
    if (!values || values->empty()) return json;
    const auto [low, high] = std::ranges::minmax(*values);
    json["min"] = low;
    json["max"] = high;
    const OutputMeaning meaning = meaning_of(graph, index);
    const bool with_labels = meaning.class_count == report.labels.size();
    if (meaning.kind == OutputKind::classes) {
        json["top"] = classes_json(*values, report, with_labels);
    } else if (meaning.kind == OutputKind::class_map) {
        json["areas"] = areas_json(*values, report);
    }
    return json;
}

Json detections_json(const std::vector<Detection>& detections, const RunReport& report) {
    Json list = Json::array();
    for (const Detection& d : detections) {
        list.push_back(labelled({{"class", d.class_index},
                                 {"score", d.score},
                                 {"left", d.left},
                                 {"top", d.top},
                                 {"right", d.right},
                                 {"bottom", d.bottom}},
                                report.labels, d.class_index));
    }
    return list;
}

Json poses_json(const std::vector<Pose>& poses) {
    Json list = Json::array();
    for (const Pose& pose : poses) {
        Json keypoints = Json::array();
        for (std::size_t k = 0; k < pose.keypoints.size(); ++k) {
            const Keypoint& point = pose.keypoints[k];
            keypoints.push_back({{"name", keypoint_name(k)},
                                 {"score", point.score},
                                 {"x", point.x},
                                 {"y", point.y}});
        }
        list.push_back({{"score", pose.score}, {"keypoints", std::move(keypoints)}});
    }
    return list;
}

Json findings_json(const std::vector<runtime::Finding>& findings) {
    Json list = Json::array();
    for (const auto& finding : findings) {
        Json one = {{"kind", finding.kind}};
        for (const auto& [name, value] : finding.details)
            std::visit([&](const auto& known) { one[name] = known; }, value);
        one["message"] = finding.message;
        list.push_back(std::move(one));
    }
    return list;
}

}  // namespace

void print_run_json(Console& console, const runtime::Session& session, const RunReport& report) {
    Json document = json_document("run");
    document["model"] = report.model;
    document["device"] = report.device;
    document["arithmetic"] = report.arithmetic;
    document["threads"] = report.threads;
    document["time"] = {{"first_s", report.first_seconds}};
    document["time"].update(latency_json(report.latency));
    document["outputs"] = Json::array();
    for (std::size_t i = 0; i < session.output_count(); ++i) {
        document["outputs"].push_back(output_json(session, report, i));
    }
    if (const auto detections = detections_of(session)) {
        document["detections"] = detections_json(*detections, report);
    }
    if (const auto poses = poses_of(session)) document["poses"] = poses_json(*poses);
    document["placements"] = placements_json(session);
    if (Json chip = chip_json(session); !chip.is_null()) document["chip"] = std::move(chip);
    if (report.findings) document["findings"] = findings_json(*report.findings);
    if (report.layers != nullptr) {
        document["layers"] = layers_json(*report.layers);
        document["operators_without_layer"] = names_json(report.layers->without_layer);
    }
    print_json(console, document);
}

}  // namespace reef::tool
