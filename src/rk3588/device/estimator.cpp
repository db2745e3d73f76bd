#include "rk3588/device/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reef/base/text.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/stream/task_work.h"

namespace reef::rk3588 {
namespace {

/// What works at a task, each in a lane of the picture for every core.
enum Worker : std::uint8_t { fetch, array, write_back, part_count };
constexpr std::array<const char*, part_count> part_names = {
    "fetch: commands, features, weights", "array", "DPU and PPU: operands, results"};

struct TaskTime {
    std::uint32_t first_word = 0;
    std::array<double, part_count> cycles{};
    double bus = 0;
    std::uint64_t bytes = 0;
    /// The parts work at once, and the bus carries the bytes of all.
    [[nodiscard]] double all() const {
        return spec::assumed::task_cycles + std::max(cycles[array], bus);
    }
};

/// On one of `cores` that work at once.
TaskTime time_of(const TaskPlace& place, const Task& task, std::size_t cores) {
    const Work work = work_of(task);
    const auto on_bus = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes) / bytes_per_cycle(cores);
    };
    const BytesMoved& b = work.bytes;
    TaskTime time{
        .first_word = place.first_word, .cycles = {}, .bus = on_bus(b.total()), .bytes = b.total()};
    time.cycles[fetch] = on_bus(b.commands + b.features + b.weights);
    time.cycles[array] = static_cast<double>(work.array);
    time.cycles[write_back] = on_bus(b.operands + b.results);
    return time;
}

struct Totals {
    double cycles = 0, array = 0;  ///< array: of all cores
    std::uint64_t bytes = 0, tasks = 0;
    std::size_t cores = 1;
};

void draw(const TaskTime& task, const std::string& name, double begin, std::size_t first_lane,
          chip::WorkPicture& picture) {
    constexpr double cycles_per_us = spec::assumed::clock_hz / 1e6;
    for (std::size_t part = 0; part < part_count; ++part)
        if (task.cycles[part] > 0)
            picture.spans.push_back(
                {.lane = first_lane + part,
                 .name = name,
                 .word = task.first_word,
                 .begin_us = (begin + spec::assumed::task_cycles) / cycles_per_us,
                 .duration_us = task.cycles[part] / cycles_per_us});
}

std::string name_of(const Artifact& a, std::uint32_t task) {
    for (const ArtifactOperator& op : a.operators)
        if (task >= op.first_task && task < op.first_task + op.tasks)
            return fmt::format("{} {}", op.index, op.name);
    return {};
}

/// Cores work at once from one barrier to the next.
Status time_stage(const Artifact& a, const Stage& stage, Totals& totals, std::size_t first_lane,
                  chip::WorkPicture& picture) {
    double longest = 0;
    for (std::size_t core = 0; core < stage.size(); ++core) {
        double own = 0;
        for (std::uint32_t t = 0; t < stage[core].tasks; ++t) {
            const std::uint32_t number = stage[core].first_task + t;
            const std::string name = name_of(a, number);
            const auto task = time_of(a.tasks[number], REEF_TRY(task_of(a, number)), stage.size());
            draw(task, name, totals.cycles + own, first_lane + core * part_count, picture);
            own += task.all();
            totals.array += task.cycles[array];
            totals.bytes += task.bytes;
            ++totals.tasks;
        }
        longest = std::max(longest, own);
    }
    totals.cycles += longest;
    return {};
}

Status time(const Artifact& a, Totals& totals, chip::WorkPicture& picture) {
    const std::size_t process = picture.processes.size(), first_lane = picture.lanes.size();
    const std::size_t cores = cores_of(a);
    totals.cores = std::max(totals.cores, cores);
    picture.processes.push_back(fmt::format("RK3588 program {} (estimate)", process));
    for (std::size_t core = 0; core < cores; ++core)
        for (const char* part : part_names)
            picture.lanes.push_back({process, fmt::format("core {} {}", core, part)});
    for (const Stage& stage : stages_of(a))
        REEF_CHECK(time_stage(a, stage, totals, first_lane, picture));
    return {};
}

chip::Section section_of(const Totals& totals) {
    chip::Section section{
        "on a real chip",
        "an estimate from stated assumptions (docs/rk3588-machine.md), no measurement",
        {}};
    section.add("each inference", duration_text(totals.cycles / spec::assumed::clock_hz));
    section.add(
        "cycles",
        fmt::format("{:.0f} of {}, {:.1f} % of them with the array at work", totals.cycles,
                    totals.cores == 1 ? "one core" : fmt::format("{} cores", totals.cores),
                    100 * totals.array / (totals.cycles * static_cast<double>(totals.cores))));
    section.add("bytes moved", bytes_text(static_cast<std::int64_t>(totals.bytes)));
    section.add("tasks", std::to_string(totals.tasks));
    return section;
}

}  // namespace

Result<std::optional<chip::Estimate>> Estimator::estimate(const model::Model& model) const {
    chip::Estimate out;
    Totals totals;
    for (const model::Operator& op : model.subgraphs[0].operators)
        if (is_compiled(op))
            REEF_CHECK(
                time(REEF_TRY(read_artifact(op.custom_options.view())), totals, out.picture));
    if (totals.tasks == 0) return std::nullopt;
    out.sections.push_back(section_of(totals));
    out.document = {
        {"cycles", totals.cycles},      {"cores", totals.cores},
        {"array_cycles", totals.array}, {"seconds", totals.cycles / spec::assumed::clock_hz},
        {"bytes_moved", totals.bytes},  {"tasks", totals.tasks}};
    return out;
}

}  // namespace reef::rk3588
