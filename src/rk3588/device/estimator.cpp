#include "rk3588/device/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reef/base/text.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/sim/machine.h"

namespace reef::rk3588 {
namespace {

/// What works at a task, each in a lane of the picture for every core.
enum Worker : std::uint8_t { fetch, array, write_back, part_count };
constexpr std::array<const char*, part_count> part_names = {
    "fetch: commands, features, weights", "array", "DPU and PPU: operands, results"};

/// What a core may move when so many work at once.
double bytes_per_cycle(std::size_t cores) {
    if (cores == 1) return spec::assumed::bytes_per_cycle;
    return spec::assumed::bytes_per_cycle_of_all_cores / static_cast<double>(cores);
}

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

double padded_share(unsigned count, unsigned lanes) {
    const unsigned some = std::max(1U, count);
    return static_cast<double>((some + lanes - 1) / lanes * lanes) / some;
}

/// Steps of the array, whose lanes small tasks leave empty.
double array_cycles(const Task& task, std::uint64_t products) {
    if ((task.blocks & Blocks::core) == 0) return 0;
    const RegisterSet& r = task.registers;
    const unsigned channels = r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">();
    const auto computed = static_cast<double>(products);
    if (r.get<"CNA_CONV_CON1.CONV_MODE">() != 0)
        return computed * padded_share(channels, spec::int8_depthwise_lanes) /
               spec::int8_depthwise_lanes;
    const unsigned kernels = r.get<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">();
    return computed * padded_share(channels, spec::kernel_lanes) *
           padded_share(kernels, spec::int8_group_kernels) / spec::assumed::macs_per_cycle;
}

/// A program in memory of its own; its inputs are 0, which no time depends on.
class TimedProgram {
  public:
    [[nodiscard]] Status place(const Artifact& a) {
        constants_.assign(a.constants.view().begin(), a.constants.view().end());
        activations_.resize(a.activation_bytes);
        constexpr std::uint64_t page = 4096;
        const auto behind = [&](std::uint64_t at, std::uint64_t bytes) {
            return (at + bytes + page - 1) / page * page;
        };
        const std::uint64_t constants =
            behind(commands_at, a.commands.size() * sizeof(a.commands[0]));
        const std::uint64_t activations = behind(constants, constants_.size());
        if (behind(activations, activations_.size()) > std::uint64_t{1} << 32)
            return fail(Cause::unsupported, "the program is larger than the NPU addresses");
        std::uint32_t base[area_count];
        base[static_cast<std::size_t>(Area::commands)] = commands_at;
        base[static_cast<std::size_t>(Area::constants)] = static_cast<std::uint32_t>(constants);
        base[static_cast<std::size_t>(Area::activations)] = static_cast<std::uint32_t>(activations);
        commands_ = relocated(a, base);
        REEF_CHECK(add(commands_at, std::as_writable_bytes(std::span(commands_))));
        REEF_CHECK(add(base[static_cast<std::size_t>(Area::constants)], constants_));
        return add(base[static_cast<std::size_t>(Area::activations)], activations_);
    }

    /// On one of `cores` that work at once.
    [[nodiscard]] Result<TaskTime> run(const TaskPlace& place, std::size_t core,
                                       std::size_t cores) {
        const auto words =
            std::as_bytes(std::span(commands_).subspan(place.first_word, place.words));
        const Task task = REEF_TRY(read_task(words));
        const auto address =
            static_cast<std::uint32_t>(commands_at + place.first_word * sizeof(std::uint64_t));
        const auto ran = REEF_TRY(machines_[core].run(address, place.words, 1));
        const sim::Traffic t = ran.traffic();
        const auto on_bus = [&](std::uint64_t bytes) {
            return static_cast<double>(bytes) / bytes_per_cycle(cores);
        };
        TaskTime time{.first_word = place.first_word,
                      .cycles = {},
                      .bus = on_bus(t.total()),
                      .bytes = t.total()};
        time.cycles[fetch] = on_bus(t.commands + t.features + t.weights);
        time.cycles[array] = array_cycles(task, ran.tasks[0].products);
        time.cycles[write_back] = on_bus(t.operands + t.results);
        return time;
    }

  private:
    static constexpr std::uint32_t commands_at = 0x10000;
    [[nodiscard]] Status add(std::uint32_t address, MutableBytes bytes) {
        return bytes.empty() ? Status{} : memory_.add(address, bytes);
    }
    std::vector<std::byte> constants_, activations_;
    std::vector<std::uint64_t> commands_;
    sim::Memory memory_;
    std::array<sim::Machine, spec::core_count> machines_{
        sim::Machine(memory_), sim::Machine(memory_), sim::Machine(memory_)};
};

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
Status time_stage(const Artifact& a, const Stage& stage, TimedProgram& program, Totals& totals,
                  std::size_t first_lane, chip::WorkPicture& picture) {
    double longest = 0;
    for (std::size_t core = 0; core < stage.size(); ++core) {
        double own = 0;
        for (std::uint32_t t = 0; t < stage[core].tasks; ++t) {
            const std::uint32_t number = stage[core].first_task + t;
            const std::string name = name_of(a, number);
            const auto task = REEF_TRY(
                in_place(program.run(a.tasks[number], core, stage.size()), "operator " + name));
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
    TimedProgram program;
    REEF_CHECK(program.place(a));
    for (const Stage& stage : stages_of(a))
        REEF_CHECK(time_stage(a, stage, program, totals, first_lane, picture));
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
