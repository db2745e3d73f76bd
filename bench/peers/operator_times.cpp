#include "peers/operator_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "peers/networks.h"
#include "peers/ort_peer.h"
#include "peers/random_input.h"
#include "peers/xnnpack_placer.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

using graph::Executor;

/// The least time of every operator.
class LeastTimes final : public graph::RunObserver {
  public:
    explicit LeastTimes(std::size_t operators) : microseconds(operators, 1e18) {}
    void on_operator(std::size_t i, Clock::time_point begin, Clock::time_point end) override {
        const std::chrono::duration<double, std::micro> taken = end - begin;
        microseconds[i] = std::min(microseconds[i], taken.count());
    }
    std::vector<double> microseconds;
};

std::string shape_of(const model::Subgraph& graph, const std::vector<model::TensorIndex>& list,
                     std::size_t i) {
    return i < list.size() && list[i] >= 0
               ? model::shape_text(graph.tensors[static_cast<std::size_t>(list[i])].shape)
               : std::string();
}

/// Nothing where ONNX Runtime does not run the network; says why.
std::vector<double> ort_microseconds(const model::Model& model, Executor& ours,
                                     const Options& options) {
    auto peer = OrtPeer::start(model, ours, options.threads);
    auto times = peer ? peer->operator_times(options.rounds, ours.graph().operators.size())
                      : Result<std::vector<double>>(std::unexpected(peer.error()));
    if (times) return std::move(*times);
    fmt::print("without ONNX Runtime: {}\n", times.error().message());
    return {};
}

}  // namespace

Status print_operators(const std::string& path, const Options& options) {
    const auto [name, model] = REEF_TRY(load_network(path));
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    Executor ours =
        REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = options.threads}));
    Executor theirs =
        REEF_TRY(Executor::create(model, {.placers = {xnnpack_placer(pool.get()), cpu::placer()},
                                          .threads = options.threads}));
    fill(ours);
    fill(theirs);
    const model::Subgraph& graph = ours.graph();
    LeastTimes reef(graph.operators.size()), peer(graph.operators.size());
    for (int round = 0; round < options.rounds; ++round) {
        REEF_TRY(ours.run(&reef));
        REEF_TRY(theirs.run(&peer));
    }
    const std::vector<double> ort = ort_microseconds(model, ours, options);
    fmt::print("{}\n  op  {:44} {:>18} {:>18} {:>18} {:>8} {:>8} {:>6} {:>8} {:>6}\n", name,
               "kernel", "input", "weights", "output", "Reef us", "XNNPACK", "ratio", "ORT",
               "ratio");
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        const double ours_us = reef.microseconds[i];
        fmt::print("{:4}  {:44} {:>18} {:>18} {:>18} {:8.1f} {:8.1f} {:6.2f} {:>8} {:>6}{}\n", i,
                   ours.placements()[i].kernel, shape_of(graph, op.inputs, 0),
                   shape_of(graph, op.inputs, 1), shape_of(graph, op.outputs, 0), ours_us,
                   peer.microseconds[i], ours_us / peer.microseconds[i],
                   ort.empty() ? "-" : fmt::format("{:.1f}", ort[i]),
                   ort.empty() || ort[i] == 0 ? "-" : fmt::format("{:.2f}", ours_us / ort[i]),
                   theirs.placements()[i].placer == 0 ? "" : "  both on Reef's");
    }
    return {};
}

}  // namespace reef::peers
