#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "json_output.h"
#include "model_text.h"
#include "reef/model/cost.h"

namespace reef::tool {
namespace {

std::vector<TypeTime> times_by_type(const std::vector<OperatorTime>& operators) {
    std::vector<TypeTime> types;
    for (const OperatorTime& op : operators) {
        auto found = std::ranges::find(types, op.name, &TypeTime::name);
        if (found == types.end()) found = types.insert(found, TypeTime{op.name, 0, 0, 0});
        found->count += 1;
        found->seconds += op.seconds;
        found->share += op.share;
    }
    std::ranges::sort(types, std::greater{}, &TypeTime::seconds);
    return types;
}

}  // namespace

Profile profile_of(const model::Model& model, const runtime::Session& session,
                   const std::vector<Recorder::Event>& events, std::size_t runs) {
    const model::Subgraph& graph = session.graph();
    Profile profile;
    profile.runs = runs;
    for (const runtime::PlacedOperator& placed : session.placements()) {
        const model::Operator& op = graph.operators[placed.index];
        OperatorTime time{placed.index, placed.name, placed.kernel, {}, 0, 0, 0};
        if (!op.outputs.empty()) {
            time.output = shape_and_type(graph.tensors[static_cast<std::size_t>(op.outputs[0])]);
        }
        time.macs = model::cost_of(model, graph, op).macs;
        profile.operators.push_back(std::move(time));
    }
    for (const Recorder::Event& event : events) {
        const double seconds = std::chrono::duration<double>(event.end - event.begin).count() /
                               static_cast<double>(runs);
        profile.operators[event.operator_index].seconds += seconds;
        profile.seconds += seconds;
    }
    for (OperatorTime& op : profile.operators) {
        if (profile.seconds > 0) op.share = op.seconds / profile.seconds;
    }
    profile.types = times_by_type(profile.operators);
    return profile;
}

namespace {

constexpr int chip_process = 2;

/// Lanes are threads of a process: one for each tile and engine that does something.
void add_chip(Json& list, std::span<const edgetpu::EngineSpan> chip) {
    if (chip.empty()) return;
    list.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", chip_process},
                    {"tid", 0},
                    {"args", {{"name", "Edge TPU, estimated"}}}});
    std::map<std::pair<int, std::string>, int> lanes;
    for (const auto& span : chip) lanes.emplace(std::pair(span.tile, span.engine), 0);
    int next = 1;
    for (auto& [lane, number] : lanes) {
        number = next++;
        const bool scalar = lane.first == edgetpu::EngineSpan::scalar_core;
        list.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", chip_process},
                        {"tid", number},
                        {"args",
                         {{"name", scalar ? "scalar core " + lane.second
                                          : fmt::format("tile {} {}", lane.first, lane.second)}}}});
    }
    const double microseconds = 1e6 / edgetpu::estimated_clock_hz();
    for (const auto& span : chip) {
        list.push_back({{"name", span.instruction},
                        {"cat", "estimate"},
                        {"ph", "X"},
                        {"ts", static_cast<double>(span.begin) * microseconds},
                        {"dur", static_cast<double>(span.cycles) * microseconds},
                        {"pid", chip_process},
                        {"tid", lanes.at(std::pair(span.tile, std::string(span.engine)))},
                        {"args", {{"word", span.word}}}});
    }
}

}  // namespace

std::string chrome_trace(const Profile& profile, const std::string& process_name,
                         const std::vector<Recorder::Event>& events,
                         std::span<const edgetpu::EngineSpan> chip) {
    using Microseconds = std::chrono::duration<double, std::micro>;
    Json list = Json::array();
    list.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"name", process_name}}}});
    list.push_back({{"name", "thread_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"name", "cpu"}}}});
    for (const Recorder::Event& event : events) {
        const OperatorTime& op = profile.operators[event.operator_index];
        list.push_back({{"name", op.name},
                        {"cat", "operator"},
                        {"ph", "X"},
                        {"ts", Microseconds(event.begin - events.front().begin).count()},
                        {"dur", Microseconds(event.end - event.begin).count()},
                        {"pid", 1},
                        {"tid", 1},
                        {"args",
                         {{"index", op.index},
                          {"kernel", op.kernel},
                          {"output", op.output},
                          {"macs", op.macs}}}});
    }
    add_chip(list, chip);
    return json_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}}) + "\n";
}

}  // namespace reef::tool
