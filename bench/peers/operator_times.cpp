#include "peers/operator_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "peers/least_times.h"
#include "peers/networks.h"
#include "peers/ort_peer.h"
#include "peers/random_input.h"
#include "peers/xnnpack_placer.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

using graph::Executor;
using Json = nlohmann::ordered_json;

std::string shape_of(const model::Subgraph& graph, const std::vector<model::TensorIndex>& list,
                     std::size_t i) {
    return i < list.size() && list[i] >= 0
               ? model::shape_text(graph.tensors[static_cast<std::size_t>(list[i])].shape)
               : std::string();
}

/// Least microseconds by operator.
struct Times {
    std::vector<double> reef, xnnpack, ort;  ///< the last empty where ONNX Runtime does not run it
    std::string without_ort{};               ///< why
};

void add_ort(const model::Model& model, Executor& ours, const Options& options, Times& times) {
    auto peer = OrtPeer::start(model, ours, options.threads);
    auto measured = peer ? peer->operator_times(options.rounds, ours.graph().operators.size())
                         : Result<std::vector<double>>(std::unexpected(peer.error()));
    if (measured)
        times.ort = std::move(*measured);
    else
        times.without_ort = measured.error().message();
}

/// A network in both executors, and its times.
struct Measured {
    std::string name;
    Executor ours, theirs;
    Times times{};

    [[nodiscard]] const model::Operator& op(std::size_t i) const {
        return ours.graph().operators[i];
    }
    [[nodiscard]] bool on_xnnpack(std::size_t i) const {
        return theirs.placements()[i].placer == 0;
    }
};

Result<Measured> measure_operators(const std::string& path, pthreadpool* pool,
                                   const Options& options) {
    auto [name, model] = REEF_TRY(load_network(path));
    Measured made{.name = std::move(name),
                  .ours = REEF_TRY(Executor::create(
                      model, {.placers = {cpu::placer()}, .threads = options.threads})),
                  .theirs = REEF_TRY(
                      Executor::create(model, {.placers = {xnnpack_placer(pool), cpu::placer()},
                                               .threads = options.threads}))};
    fill(made.ours);
    fill(made.theirs);
    const std::size_t operators = made.ours.graph().operators.size();
    LeastTimes reef(operators), peer(operators);
    for (int round = 0; round < options.rounds; ++round) {
        REEF_TRY(made.ours.run(&reef));
        REEF_TRY(made.theirs.run(&peer));
    }
    made.times.reef = std::move(reef.microseconds);
    made.times.xnnpack = std::move(peer.microseconds);
    add_ort(model, made.ours, options, made.times);
    return made;
}

void print_text(const Measured& made) {
    const auto& [reef, xnnpack, ort, without_ort] = made.times;
    if (!without_ort.empty()) fmt::print("without ONNX Runtime: {}\n", without_ort);
    fmt::print("{}\n  op  {:44} {:>18} {:>18} {:>18} {:>8} {:>8} {:>6} {:>8} {:>6}\n", made.name,
               "kernel", "input", "weights", "output", "Reef us", "XNNPACK", "ratio", "ORT",
               "ratio");
    for (std::size_t i = 0; i < reef.size(); ++i) {
        const model::Subgraph& graph = made.ours.graph();
        fmt::print("{:4}  {:44} {:>18} {:>18} {:>18} {:8.1f} {:8.1f} {:6.2f} {:>8} {:>6}{}\n", i,
                   made.ours.placements()[i].kernel, shape_of(graph, made.op(i).inputs, 0),
                   shape_of(graph, made.op(i).inputs, 1), shape_of(graph, made.op(i).outputs, 0),
                   reef[i], xnnpack[i], reef[i] / xnnpack[i],
                   ort.empty() ? "-" : fmt::format("{:.1f}", ort[i]),
                   ort.empty() || ort[i] == 0 ? "-" : fmt::format("{:.2f}", reef[i] / ort[i]),
                   made.on_xnnpack(i) ? "" : "  both on Reef's");
    }
}

Json json_of(const Measured& made) {
    const Times& t = made.times;
    const model::Subgraph& graph = made.ours.graph();
    Json operators = Json::array();
    for (std::size_t i = 0; i < t.reef.size(); ++i)
        operators.push_back({{"index", i},
                             {"kernel", made.ours.placements()[i].kernel},
                             {"input", shape_of(graph, made.op(i).inputs, 0)},
                             {"weights", shape_of(graph, made.op(i).inputs, 1)},
                             {"output", shape_of(graph, made.op(i).outputs, 0)},
                             {"reef_us", t.reef[i]},
                             {"xnnpack_us", t.xnnpack[i]},
                             {"on_xnnpack", made.on_xnnpack(i)},
                             {"ort_us", t.ort.empty() ? Json() : Json(t.ort[i])}});
    return {{"network", made.name},
            {"without_ort", t.without_ort.empty() ? Json() : Json(t.without_ort)},
            {"operators", operators}};
}

}  // namespace

Status print_operators(const Options& options) {
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    Json networks = Json::array();
    for (const std::string& path : options.models) {
        const Measured made =
            REEF_TRY(in_place(measure_operators(path, pool.get(), options), path));
        if (options.json)
            networks.push_back(json_of(made));
        else
            print_text(made);
    }
    if (options.json)
        fmt::print("{}\n", Json{{"schema_version", 1},
                                {"target", cpu::simd_target()},
                                {"threads", options.threads},
                                {"rounds", options.rounds},
                                {"networks", networks}}
                               .dump(2));
    return {};
}

}  // namespace reef::peers
