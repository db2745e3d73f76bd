#include "outputs/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

/// Behind the process of the command itself.
constexpr std::size_t first_chip_process = 2;

void add_chip(Json& list, const chip::WorkPicture& chip) {
    const auto name = [&list](std::string_view kind, std::size_t process, std::size_t thread,
                              const std::string& text) {
        list.push_back({{"name", kind},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"args", {{"name", text}}}});
    };
    const auto process_of = [&](std::size_t lane) {
        return first_chip_process + chip.lanes[lane].process;
    };
    for (std::size_t i = 0; i < chip.processes.size(); ++i)
        name("process_name", first_chip_process + i, 0, chip.processes[i]);
    for (std::size_t i = 0; i < chip.lanes.size(); ++i)
        name("thread_name", process_of(i), i + 1, chip.lanes[i].name);
    for (const auto& span : chip.spans)
        list.push_back({{"name", span.name},
                        {"cat", "estimate"},
                        {"ph", "X"},
                        {"ts", span.begin_us},
                        {"dur", span.duration_us},
                        {"pid", process_of(span.lane)},
                        {"tid", span.lane + 1},
                        {"args", {{"word", span.word}}}});
}

}  // namespace

std::string chrome_trace(const Profile& profile, const std::string& process_name,
                         const std::vector<Recorder::Event>& events,
                         const chip::WorkPicture& chip) {
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
