#include "repeated.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace reef::edgetpu::layers {
namespace {

/// By position and lane, counted from `channel` on; lanes that read nothing have none.
std::vector<std::int32_t> channels_from(const Execution& execution, std::int32_t& channel) {
    std::vector<std::int32_t> channels(execution.positions() * execution.most_lanes(), no_channel);
    for (std::size_t p = 0; p < execution.positions(); ++p)
        for (unsigned lane = 0; lane < execution.lanes_of(p); ++lane)
            if (execution.lanes.empty() || execution.lane(0, p, lane) != no_origin)
                channels[p * execution.most_lanes() + lane] = channel++;
    return channels;
}

/// The executions of each instruction, in their order.
using Runs = std::map<std::uint32_t, std::vector<std::size_t>>;

std::optional<Runs> runs_of(const Trace& trace, const TracedLayer& layer) {
    Runs runs;
    const unsigned tile = trace.executions[layer.executions.front()].tile;
    for (std::size_t i = 0; i < layer.executions.size(); ++i) {
        const Execution& execution = trace.executions[layer.executions[i]];
        if (execution.tile != tile) return std::nullopt;
        runs[execution.instruction->number].push_back(i);
    }
    const std::size_t times = runs.begin()->second.size();
    const bool equally_often =
        std::ranges::all_of(runs, [times](const auto& run) { return run.second.size() == times; });
    if (times < 2 || !equally_often) return std::nullopt;
    return runs;
}

void fill(const Trace& trace, TracedLayer& layer) {
    const std::size_t width = layer.element_bytes;
    const auto channels = static_cast<std::size_t>(layer.channels);
    layer.tensor.resize(static_cast<std::size_t>(layer.width) * channels * width);
    for (std::size_t i = 0; i < layer.executions.size(); ++i) {
        const Execution& from = trace.executions[layer.executions[i]];
        for (std::size_t p = 0; p < from.positions(); ++p)
            for (unsigned lane = 0; lane < from.lanes_of(p); ++lane) {
                const auto c = layer.lane_channels[i][p * from.most_lanes() + lane];
                if (c == no_channel) continue;
                const std::size_t at = static_cast<std::size_t>(layer.places[i][p].x) * channels +
                                       static_cast<std::size_t>(c);
                std::memcpy(&layer.tensor[at * width],
                            &from.results[from.offset_of(p) + lane * width], width);
            }
    }
}

}  // namespace

void gather_repeated(const Trace& trace, TracedLayer& layer) {
    const auto runs = runs_of(trace, layer);
    if (!runs) return;
    TracedLayer stacked = layer;
    stacked.places.resize(layer.executions.size());
    stacked.lane_channels.resize(layer.executions.size());
    const auto times = static_cast<std::int32_t>(runs->begin()->second.size());
    for (std::int32_t time = 0; time < times; ++time) {
        std::int32_t channel = 0;
        for (const auto& [number, executions] : *runs) {
            const std::size_t i = executions[static_cast<std::size_t>(time)];
            const Execution& execution = trace.executions[layer.executions[i]];
            stacked.places[i].assign(execution.positions(), {0, time, 0});
            stacked.lane_channels[i] = channels_from(execution, channel);
        }
        if (time > 0 && channel != stacked.channels) return;
        stacked.channels = channel;
    }
    stacked.problem.clear();
    stacked.height = 1;
    stacked.width = times;
    stacked.element_bytes = trace.executions[layer.executions.front()].element_bytes();
    fill(trace, stacked);
    layer = std::move(stacked);
}

}  // namespace reef::edgetpu::layers
