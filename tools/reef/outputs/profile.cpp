#include "outputs/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "outputs/json_output.h"
#include "outputs/model_text.h"
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

int process_of(const edgetpu::EngineSpan& span) {
    return span.caching ? 3 : 2;
}

/// Lanes are threads of a process, one process a program: a lane for each tile and engine that does
/// something.
void add_chip(Json& list, std::span<const edgetpu::EngineSpan> chip) {
    const auto name = [&list](std::string_view kind, int process, int thread, std::string text) {
        list.push_back({{"name", kind},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"args", {{"name", std::move(text)}}}});
    };
    std::map<int, std::string_view> processes;
    std::map<std::tuple<int, int, std::string_view>, int> lanes;
    for (const auto& span : chip) {
        processes.emplace(process_of(span), span.caching
                                                ? "Edge TPU, estimated: loading the parameters"
                                                : "Edge TPU, estimated: inference");
        lanes.emplace(std::tuple(process_of(span), span.tile, span.engine), 0);
    }
    for (const auto& [process, text] : processes)
        name("process_name", process, 0, std::string(text));
    int next = 1;
    for (auto& [lane, number] : lanes) {
        const auto& [process, tile, engine] = lane;
        number = next++;
        name("thread_name", process, number,
             tile == edgetpu::EngineSpan::scalar_core ? fmt::format("scalar core {}", engine)
                                                      : fmt::format("tile {} {}", tile, engine));
    }
    const double microseconds = 1e6 / edgetpu::estimated_clock_hz();
    for (const auto& span : chip) {
        list.push_back({{"name", span.instruction},
                        {"cat", "estimate"},
                        {"ph", "X"},
                        {"ts", static_cast<double>(span.begin) * microseconds},
                        {"dur", static_cast<double>(span.cycles) * microseconds},
                        {"pid", process_of(span)},
                        {"tid", lanes.at({process_of(span), span.tile, span.engine})},
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
