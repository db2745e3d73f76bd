#include <algorithm>
#include <cmath>

#include "inputs/model_session.h"
#include "outputs/model_text.h"
#include "outputs/text_table.h"
#include "run/result.h"

namespace reef::tool {
namespace {

void print_time(Console& console, const RunReport& report) {
    const std::string threads = plural(static_cast<std::size_t>(report.threads), "thread");
    if (report.latency.runs < 2) {
        console.print("{} per inference ({}, first run)\n",
                      console.heading(duration_text(report.first_seconds)), threads);
        return;
    }
    console.print("{} per inference ({}, median of {} runs; the first took {})\n",
                  console.heading(duration_text(report.latency.median)), threads,
                  report.latency.runs, duration_text(report.first_seconds));
}

void print_classes(Console& console, const std::vector<double>& scores, const RunReport& report,
                   bool labelled) {
    std::vector<Column> columns = {{"score", Align::right}, {"class", Align::right}};
    if (labelled) columns.push_back({"label"});
    TextTable table(std::move(columns));
    for (const ClassScore& entry : top_scores(scores, report.top)) {
        std::vector<std::string> row = {fmt::format("{:.4f}", entry.score),
                                        std::to_string(entry.index)};
        if (labelled) row.push_back(label_of(report.labels, entry.index));
        table.add(std::move(row));
    }
    table.print(console);
}

void print_areas(Console& console, const std::vector<double>& classes, const RunReport& report) {
    TextTable table(
        {{"area", Align::right}, {"places", Align::right}, {"class", Align::right}, {"label"}});
    for (const ClassArea& area : areas_of(classes)) {
        const double part = static_cast<double>(area.places) / static_cast<double>(classes.size());
        table.add({fmt::format("{:.2f} %", 100 * part), std::to_string(area.places),
                   std::to_string(area.index), label_of(report.labels, area.index)});
    }
    table.print(console);
}

void print_values(Console& console, const std::vector<double>& values) {
    const auto finite = [](double value) { return std::isfinite(value); };
    std::vector<double> numbers;
    std::ranges::copy_if(values, std::back_inserter(numbers), finite);
    if (numbers.empty()) return;
    const auto [low, high] = std::ranges::minmax(numbers);
    constexpr std::size_t first_values = 8;
    std::string first;
    for (std::size_t i = 0; i < std::min(values.size(), first_values); ++i) {
        first += fmt::format(" {:.6g}", values[i]);
    }
    console.print("  from {:.6g} to {:.6g}{}; first values{}{}\n", low, high,
                  numbers.size() < values.size()
                      ? fmt::format(", {} not finite", values.size() - numbers.size())
                      : "",
                  first, values.size() > first_values ? " ..." : "");
}

void print_output(Console& console, const runtime::Session& session, const RunReport& report,
                  std::size_t position) {
    const model::Subgraph& graph = session.graph();
    const model::TensorIndex index = graph.outputs[position];
    const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
    const std::string quantization = quantization_text(tensor);
    console.print("\n{} {}  {}{}{}\n", console.heading(fmt::format("output {}", position)),
                  printable(shortened(tensor.name)), shape_and_type(tensor),
                  quantization.empty() ? "" : "  ", quantization);
    const auto values = real_values(tensor, session.output(position));
    if (!values || values->empty()) return;
    const OutputMeaning meaning = meaning_of(graph, index);
    const bool labelled = meaning.class_count == report.labels.size() && !report.labels.empty();
    if (meaning.kind == OutputKind::classes && (meaning.certain || labelled || report.top_asked)) {
        print_classes(console, *values, report, labelled);
    } else if (meaning.kind == OutputKind::class_map) {
        print_areas(console, *values, report);
    } else {
        print_values(console, *values);
    }
}

void print_detections(Console& console, const std::vector<Detection>& detections,
                      const RunReport& report) {
    console.print("\n{}\n", console.heading(plural(detections.size(), "detection")));
    TextTable table({{"score", Align::right},
                     {"class", Align::right},
                     {"label"},
                     {"left", Align::right},
                     {"top", Align::right},
                     {"right", Align::right},
                     {"bottom", Align::right}});
    const std::size_t shown = std::min(detections.size(), report.top);
    for (std::size_t i = 0; i < shown; ++i) {
        const Detection& d = detections[i];
        table.add({fmt::format("{:.4f}", d.score), std::to_string(d.class_index),
                   label_of(report.labels, d.class_index), fmt::format("{:.4f}", d.left),
                   fmt::format("{:.4f}", d.top), fmt::format("{:.4f}", d.right),
                   fmt::format("{:.4f}", d.bottom)});
    }
    if (!table.empty()) table.print(console);
    if (shown < detections.size()) {
        console.print("  ... {} more: --top {} shows them\n", detections.size() - shown,
                      detections.size());
    }
}

void print_poses(Console& console, const std::vector<Pose>& poses, const RunReport& report) {
    console.print("\n{}\n", console.heading(plural(poses.size(), "pose")));
    const std::size_t shown = std::min(poses.size(), report.top);
    for (std::size_t p = 0; p < shown; ++p) {
        console.print("\n  pose {}, score {:.4f}\n", p, poses[p].score);
        TextTable table(
            {{"keypoint"}, {"score", Align::right}, {"x", Align::right}, {"y", Align::right}});
        for (std::size_t k = 0; k < poses[p].keypoints.size(); ++k) {
            const Keypoint& point = poses[p].keypoints[k];
            table.add({keypoint_name(k), fmt::format("{:.4f}", point.score),
                       fmt::format("{:.4f}", point.x), fmt::format("{:.4f}", point.y)});
        }
        table.print(console);
    }
    if (shown < poses.size()) {
        console.print("  ... {} more: --top {} shows them\n", poses.size() - shown, poses.size());
    }
}

void print_findings(Console& console, const std::vector<runtime::Finding>& findings) {
    console.print("\n{}{}\n", console.heading("strict run: "), plural(findings.size(), "finding"));
    for (const auto& finding : findings) console.print("  {}\n", finding.message);
}

/// "1 operator on chip:sim, 59 on cpu": chips first.
std::string operators_by_device(const runtime::Session& session) {
    std::vector<std::pair<std::string, std::size_t>> devices;
    for (const auto& placement : session.placements()) {
        const auto known = std::ranges::find(devices, placement.device,
                                             &std::pair<std::string, std::size_t>::first);
        if (known == devices.end())
            devices.emplace_back(placement.device, 1);
        else
            ++known->second;
    }
    std::ranges::stable_partition(devices, [](const auto& one) { return one.first != "cpu"; });
    std::string text;
    for (const auto& [device, count] : devices)
        text += text.empty() ? fmt::format("{} on {}", plural(count, "operator"), device)
                             : fmt::format(", {} on {}", count, device);
    return text;
}

}  // namespace

void print_run_text(Console& console, const runtime::Session& session, const RunReport& report) {
    console.print("{} on {}: ", printable(file_name(report.model)), report.device);
    print_time(console, report);
    if (const auto detections = detections_of(session)) {
        print_detections(console, *detections, report);
    } else if (const auto poses = poses_of(session)) {
        print_poses(console, *poses, report);
    } else {
        for (std::size_t i = 0; i < session.output_count(); ++i) {
            print_output(console, session, report, i);
        }
    }
    console.print("\n{}: {}\n", operators_by_device(session), placement_summary(session));
    if (const std::string chip = chip_summary(session); !chip.empty())
        console.print("{}: {}\n", report.device, chip);
    if (report.list_placements) print_placements(console, session);
    if (report.findings) print_findings(console, *report.findings);
}

}  // namespace reef::tool
