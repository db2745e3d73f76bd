#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reef/model/flexbuffer.h"
#include "run/result.h"

namespace reef::tool {

// The first label is that of class 0, which the operator counts without the background.
static Status check_detector_labels(const model::Operator& op, std::size_t labels) {
    const auto options = REEF_TRY(model::read_flexbuffer(op.custom_options.view()));
    const std::int64_t classes = REEF_TRY(options.integer("num_classes"));
    if (std::cmp_equal(classes, labels)) return {};
    return fail(
        Cause::bad_input,
        fmt::format("{} labels for the {} classes of {}", labels, classes, op.code.custom), {},
        std::cmp_equal(classes + 1, labels) ? "leave out the label of the background"
                                            : "give the labels that the network was trained with");
}

Status check_labels(const model::Subgraph& graph, const std::vector<std::string>& labels) {
    if (labels.empty()) return {};
    for (const model::Operator& op : graph.operators)
        if (op.code.builtin == model::Op::custom &&
            op.code.custom == model::detection_postprocess_op)
            return check_detector_labels(op, labels.size());
    std::string problem;
    for (const model::TensorIndex index : graph.outputs) {
        const OutputMeaning meaning = meaning_of(graph, index);
        if (meaning.kind == OutputKind::values) continue;
        if (meaning.class_count == labels.size()) return {};
        const std::string& name = graph.tensors[static_cast<std::size_t>(index)].name;
        problem = fmt::format("{} labels for the {} classes of output '{}'", labels.size(),
                              meaning.class_count, name);
    }
    if (problem.empty()) problem = "no output of this network has classes to label";
    return fail(Cause::bad_input, problem, {}, "give the labels that the network was trained with");
}

std::string label_of(const std::vector<std::string>& labels, std::size_t index) {
    return index < labels.size() ? labels[index] : std::string();
}

std::vector<ClassArea> areas_of(std::span<const double> classes) {
    std::map<std::size_t, std::size_t> counts;
    for (const double value : classes) counts[static_cast<std::size_t>(std::max(value, 0.0))] += 1;
    std::vector<ClassArea> areas;
    for (const auto& [index, places] : counts) areas.push_back({index, places});
    std::ranges::sort(areas, [](const ClassArea& a, const ClassArea& b) {
        return a.places != b.places ? a.places > b.places : a.index < b.index;
    });
    return areas;
}

}  // namespace reef::tool
