// Whole networks on the CPU floor with one thread and with two, in turn in one run: how many times
// as fast two are, and what a process still computes after a run has ended. The least of some
// rounds, in each of which either side warms up first, and the least of the next runs counts.
//
// Bounds: where one takes more than 5 ms two threads are 1.8 times as fast, or nine tenths of what
// both cores gain without memory (peers/machine_speed.h), measured between both in each round:
// those of a virtual machine do not always do twice as much as one. Nowhere are they more than 3 %
// slower, as two measurements of one and the same differ. 1 is the exit code where one is not kept.
//
// --json, schema_version 3:
//   target, rounds      the vectors; rounds of each network
//   networks[]  network, and then problem (why nothing was measured) or:
//               one_ms, two_ms          least wall times
//               times                   of them, and times_lower_quartile, times_upper_quartile of
//                                       the rounds' own
//               least_times, kept       its bound, and whether it is kept
//               core_distance_ns        a word to the other core and back, the median of the
//                                       rounds', and core_distance_least_ns and
//                                       core_distance_most_ns: a virtual machine's cores change
//                                       their places; null with one core
//               machine_times           how many times as much both cores multiply without memory
//                                       as one does, the median of the rounds'; null where it is
//                                       not known (peers/two_threads.h)
//               of_machine              times to that, the median of the rounds'; null without it
//               after_run_ms            of other threads' processor time in the 20 ms after a run,
//                                       the most of all rounds
//
// An executor takes one thread for short runs where two are measured to be no faster: `two` is then
// one, and nobody looks for work after a run. --operators shows runs that took two.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "peers/core_distance.h"
#include "peers/known_shapes.h"
#include "peers/least_times.h"
#include "peers/machine_speed.h"
#include "peers/networks.h"
#include "peers/random_input.h"
#include "peers/two_threads.h"
#include "quantile.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

using graph::Executor;
using Json = nlohmann::ordered_json;

/// Of networks that take longer than this with one thread. The others are no slower: an executor
/// that takes one thread after all differs by as much as two measurements do.
constexpr double long_ms = 5, least_times_of_long = 1.8, least_times_of_short = 0.97;

struct ThreadRow {
    std::string network;
    TwoThreads threads{};                     ///< milliseconds
    std::vector<double> core_distances_ns{};  ///< of the rounds
    double after_run_ms = 0;
    std::string problem{};

    [[nodiscard]] double bound() const {
        return is_long() ? least_times_of_long : least_times_of_short;
    }
    [[nodiscard]] bool kept() const {
        return problem.empty() && (is_long() ? threads.keep(bound()) : threads.times() >= bound());
    }

  private:
    [[nodiscard]] bool is_long() const { return threads.least_one() > long_ms; }
};

double now_ms(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// As long as the system may take to give each thread a core of its own.
constexpr double warm_up_ms = 60;
constexpr int runs_of_turn = 3;

Result<double> least_of_turn(Executor& executor) {
    const double start = now_ms(CLOCK_MONOTONIC);
    do {
        REEF_CHECK(executor.run());
    } while (now_ms(CLOCK_MONOTONIC) - start < warm_up_ms);
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < runs_of_turn; ++i) {
        const double begin = now_ms(CLOCK_MONOTONIC);
        REEF_CHECK(executor.run());
        least = std::min(least, now_ms(CLOCK_MONOTONIC) - begin);
    }
    return least;
}

/// The clock of a thread's processor time, from its number (linux/posix-timers.h): the process's
/// clock counts what other threads do at their next tick, up to 4 ms later.
clockid_t clock_of_thread(pid_t thread) {
    constexpr clockid_t of_one_thread = 4, time_scheduled = 2;
    return (~static_cast<clockid_t>(thread) << 3) | of_one_thread | time_scheduled;
}

double processor_ms_of_others() {
    double sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        const auto thread = static_cast<pid_t>(std::stol(entry.path().filename()));
        if (thread != ::gettid()) sum += now_ms(clock_of_thread(thread));
    }
    return sum;
}

/// What other threads compute while this one sleeps: they look for work until they sleep, too.
double processor_ms_of_rest() {
    constexpr std::chrono::milliseconds rest(20);
    const double begin = processor_ms_of_others();
    std::this_thread::sleep_for(rest);
    return processor_ms_of_others() - begin;
}

Status measure(const std::string& path, int rounds, ThreadRow& row) {
    const auto [name, model] = REEF_TRY(load_network(path));
    row.network = name;
    Executor one = REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = 1}));
    Executor two = REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = 2}));
    fill(one);
    fill(two);
    for (int round = 0; round < rounds; ++round) {
        const double one_ms = REEF_TRY(least_of_turn(one));
        if (const auto distance = core_distance_ns()) row.core_distances_ns.push_back(*distance);
        const auto gain = gain_of_two_threads();
        const double two_ms = REEF_TRY(least_of_turn(two));
        row.threads.note(one_ms, two_ms, gain);
        row.after_run_ms = std::max(row.after_run_ms, processor_ms_of_rest());
    }
    return {};
}

Status print_operators(const std::string& path, int rounds) {
    const auto [name, model] = REEF_TRY(load_network(path));
    Executor one = REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = 1}));
    Executor two = REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = 2}));
    fill(one);
    fill(two);
    const model::Subgraph& graph = one.graph();
    LeastTimes by_one(graph.operators.size()), by_two(graph.operators.size());
    // Observed runs tell the executor nothing, so that it goes on taking both threads.
    const auto observe = [](Executor& executor, LeastTimes& times) -> Status {
        const double start = now_ms(CLOCK_MONOTONIC);
        LeastTimes warm_up(times.microseconds.size());
        do {
            REEF_CHECK(executor.run(&warm_up));
        } while (now_ms(CLOCK_MONOTONIC) - start < warm_up_ms);
        for (int i = 0; i < runs_of_turn; ++i) REEF_CHECK(executor.run(&times));
        return {};
    };
    for (int round = 0; round < rounds; ++round) {
        REEF_CHECK(observe(one, by_one));
        REEF_CHECK(observe(two, by_two));
    }
    fmt::print("{}\n  op  {:44} {:>18} {:>9} {:>9} {:>6} {:>9}\n", name, "kernel", "output",
               "one us", "two us", "times", "lost us");
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const auto& outputs = graph.operators[i].outputs;
        const bool has_output = !outputs.empty() && outputs[0] != model::absent_tensor;
        const double a = by_one.microseconds[i], b = by_two.microseconds[i];
        fmt::print(
            "{:4}  {:44} {:>18} {:9.1f} {:9.1f} {:6.2f} {:9.1f}\n", i, one.placements()[i].kernel,
            has_output
                ? model::shape_text(graph.tensors[static_cast<std::size_t>(outputs[0])].shape)
                : "-",
            a, b, a / b, b - a / 2);
    }
    return {};
}

std::string distances_text(const std::vector<double>& ns) {
    if (ns.empty()) return "-";
    const auto [least, most] = std::ranges::minmax(ns);
    return fmt::format("{:.0f}-{:.0f}", least, most);
}

void print(const ThreadRow& row, bool bounds) {
    if (!row.problem.empty()) {
        fmt::print("{:58} not run: {}\n", row.network, row.problem);
        return;
    }
    const auto text = [](std::optional<double> value, int digits) {
        return value ? fmt::format("{:.{}f}", *value, digits) : "-";
    };
    fmt::print(
        "{:58} {:8.3f} {:8.3f} {:6.2f} {:>6.2f} {:>6.2f} {:6.2f} {:>7} {:>7} {:>9} {:9.2f}  {}\n",
        row.network, row.threads.least_one(), row.threads.least_two(), row.threads.times(),
        row.threads.times_quantile(0.25), row.threads.times_quantile(0.75), row.bound(),
        text(row.threads.machine(), 2), text(row.threads.of_machine(), 2),
        distances_text(row.core_distances_ns), row.after_run_ms,
        !bounds      ? ""
        : row.kept() ? "kept"
                     : "NOT KEPT");
}

Json json_of(std::optional<double> value) {
    return value ? Json(*value) : Json();
}

Json json_of(const ThreadRow& row) {
    if (!row.problem.empty()) return {{"network", row.network}, {"problem", row.problem}};
    const auto distance = [&](double part) {
        const auto& ns = row.core_distances_ns;
        return ns.empty() ? Json() : Json(bench::quantile(ns, part));
    };
    return {{"network", row.network},
            {"one_ms", row.threads.least_one()},
            {"two_ms", row.threads.least_two()},
            {"times", row.threads.times()},
            {"times_lower_quartile", row.threads.times_quantile(0.25)},
            {"times_upper_quartile", row.threads.times_quantile(0.75)},
            {"least_times", row.bound()},
            {"kept", row.kept()},
            {"core_distance_ns", distance(0.5)},
            {"core_distance_least_ns", distance(0)},
            {"core_distance_most_ns", distance(1)},
            {"machine_times", json_of(row.threads.machine())},
            {"of_machine", json_of(row.threads.of_machine())},
            {"after_run_ms", row.after_run_ms}};
}

int bench(std::vector<std::string> models, int rounds, bool json, bool bounds) {
    if (!json)
        fmt::print("{:58} {:>8} {:>8} {:>6} {:>13} {:>6} {:>7} {:>7} {:>9} {:>9}   on {}\n",
                   "least wall ms, ratios", "one", "two", "times", "quartiles", "bound", "machine",
                   "of that", "apart ns", "after run", cpu::simd_target());
    Json list = Json::array();
    bool kept = true;
    for (const std::string& path : models) {
        ThreadRow row{.network = name_of_network(path)};
        if (const auto status = measure(path, rounds, row); !status)
            row.problem = status.error().message();
        kept = kept && (bounds ? row.kept() : row.problem.empty());
        list.push_back(json_of(row));
        if (!json) print(row, bounds);
    }
    const Json document{{"schema_version", 3},
                        {"target", cpu::simd_target()},
                        {"rounds", rounds},
                        {"networks", list}};
    if (json) fmt::print("{}\n", document.dump(2));
    return kept ? 0 : 1;
}

}  // namespace
}  // namespace reef::peers

int main(int argc, char** argv) {
    std::vector<std::string> models;
    int rounds = 15;
    bool json = false, smoke = false, operators = false;
    CLI::App app("Two threads against one on the CPU floor; 1 where a bound is not kept");
    app.add_option(
        "MODEL", models,
        fmt::format("plain models, or {}NETWORK with NETWORK one of {}; default: those "
                    "of REEF_SHARED, or a few of the latter",
                    reef::peers::shape_prefix, fmt::join(reef::peers::known_shapes(), ", ")));
    app.add_option("--rounds", rounds)->check(CLI::Range(1, 100000));
    app.add_flag("--json", json);
    app.add_flag("--operators", operators,
                 "the least time of every operator instead, and what is lost to half of it")
        ->excludes("--json");
    app.add_flag("--smoke", smoke, "one round, without bounds");
    CLI11_PARSE(app, argc, argv);
    if (smoke) rounds = 1;
    if (models.empty()) models = reef::peers::known_models();
    if (models.empty()) models = reef::peers::few_shapes();
    for (const std::string& path : operators ? models : std::vector<std::string>()) {
        if (const auto status = reef::peers::print_operators(path, rounds); !status) {
            std::cerr << path << ": " << status.error().message() << "\n";
            return 1;
        }
    }
    if (operators) return 0;
    return reef::peers::bench(std::move(models), rounds, json, !smoke);
}
