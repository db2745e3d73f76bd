#include "layers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "gather.h"
#include "repeated.h"

namespace reef::edgetpu::layers {
namespace {

/// What instructions of one layer have in common.
auto arithmetic_of(const sim::TensorOp& op) {
    return std::tuple(op.kind, op.in_16bit, op.par_16bit, op.single, op.out_16bit, op.table,
                      op.table_normalised, op.table_odd, op.scale, op.clamp_max, op.clamp_min,
                      op.start_value, op.par_zero_rows, op.par_zero, op.in_zero, op.out_zero,
                      op.bias, op.lane_scale);
}

constexpr std::string_view reads_later =
    "it reads what an instruction behind it in the program stores";
constexpr std::string_view repeated = "the program runs its instructions more than once";

class Grouping {
  public:
    explicit Grouping(const Trace& trace)
        : trace_(trace), layer_of_(trace.executions.size(), unknown) {}

    std::vector<TracedLayer> run() {
        std::map<std::uint32_t, std::vector<std::size_t>> by_instruction;
        for (std::size_t i = 0; i < trace_.executions.size(); ++i)
            by_instruction[trace_.executions[i].instruction->number].push_back(i);
        for (const auto& [number, executions] : by_instruction) add(executions);
        return std::move(layers_);
    }

  private:
    static constexpr std::int32_t unknown = std::numeric_limits<std::int32_t>::min();

    std::int32_t owner_of(Origin origin) const {
        if (const Execution* execution = trace_.find(origin))
            return layer_of_[static_cast<std::size_t>(execution - trace_.executions.data())];
        for (std::size_t i = 0; i < trace_.inputs.size(); ++i)
            if (trace_.inputs[i].contains(origin)) return -1 - static_cast<std::int32_t>(i);
        return unknown;
    }

    std::vector<std::int32_t> sources_of(const std::vector<std::size_t>& executions) const {
        std::set<std::int32_t> sources;
        for (const std::size_t i : executions) {
            const Execution& execution = trace_.executions[i];
            for (const auto* origins : {&execution.inputs, &execution.lanes}) {
                Origin last = no_origin;
                for (const Origin origin : *origins) {
                    // Neighbours mostly come from one result's row.
                    if (origin == no_origin || (origin >= last && origin - last < 4)) continue;
                    sources.insert(owner_of(origin));
                    last = origin;
                }
            }
        }
        return {sources.begin(), sources.end()};
    }

    /// Whether the layer holds results of the same parameters.
    bool shares_parameters(const TracedLayer& layer, const Execution& execution) const {
        const Origin mine = execution.parameters.front();
        return mine != no_origin && std::ranges::any_of(layer.executions, [&](std::size_t i) {
                   return trace_.executions[i].parameters.front() == mine;
               });
    }

    /// A tile computes the results of one place in one instruction. Only a layer whose channels
    /// fill all lanes may need several; two that read the same and leave lanes idle are two layers.
    bool excludes(const TracedLayer& layer, const std::vector<std::size_t>& executions) const {
        return std::ranges::any_of(executions, [&](std::size_t mine) {
            const Execution& one = trace_.executions[mine];
            return std::ranges::any_of(layer.executions, [&](std::size_t theirs) {
                const Execution& other = trace_.executions[theirs];
                return one.tile == other.tile && one.inputs == other.inputs && one.lanes.empty() &&
                       other.op->lanes < sim::lane_count;
            });
        });
    }

    TracedLayer& layer_for(const std::vector<std::size_t>& executions) {
        const Execution& first = trace_.executions[executions.front()];
        const Key key(arithmetic_of(*first.op), sources_of(executions));
        std::optional<std::size_t> found;
        for (std::size_t i = layers_.size(); i-- > 0;) {
            if (keys_[i] != key) continue;
            if (shares_parameters(layers_[i], first)) return layers_[i];
            if (!found && !excludes(layers_[i], executions)) found = i;
        }
        if (found) return layers_[*found];
        keys_.push_back(key);
        TracedLayer& layer = layers_.emplace_back();
        layer.sources = std::get<1>(key);
        return layer;
    }

    void add(const std::vector<std::size_t>& executions) {
        TracedLayer& layer = layer_for(executions);
        const auto index = static_cast<std::int32_t>(&layer - layers_.data());
        if (std::ranges::find(layer.sources, unknown) != layer.sources.end())
            layer.problem = reads_later;
        std::set<unsigned> tiles;
        for (const std::size_t i : executions) {
            layer_of_[i] = index;
            layer.executions.push_back(i);
            if (!tiles.insert(trace_.executions[i].tile).second) layer.problem = repeated;
        }
    }

    const Trace& trace_;
    std::vector<std::int32_t> layer_of_;  ///< by execution
    using Key = std::tuple<decltype(arithmetic_of(std::declval<sim::TensorOp>())),
                           std::vector<std::int32_t>>;
    std::vector<Key> keys_;  ///< by layer
    std::vector<TracedLayer> layers_;
};

}  // namespace

std::vector<TracedLayer> find_layers(const Trace& trace) {
    auto layers = Grouping(trace).run();
    for (TracedLayer& layer : layers)
        if (layer.problem == repeated) gather_repeated(trace, layer);
    const Places places(trace, layers);
    for (TracedLayer& layer : layers)
        if (layer.problem.empty() && layer.tensor.empty()) gather(trace, places, layer);
    return layers;
}

}  // namespace reef::edgetpu::layers
