// A layer's tensor from what its executions read and store.
#pragma once

#include <vector>

#include "edgetpu/layers/traced_layer.h"
#include "edgetpu/trace/byte_trace.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::layers {

/// Where origins are: in input tensors and in layers whose tensors are known.
class Places {
  public:
    Places(const Trace& trace, const std::vector<TracedLayer>& layers);

    /// Nothing for origins in layers that are not gathered yet or cannot be, and for the words'
    /// ends behind the last lane.
    [[nodiscard]] std::optional<Place> of(Origin origin) const;
    /// As TracedLayer::sources has it.
    [[nodiscard]] std::optional<std::int32_t> source_of(Origin origin) const;

  private:
    struct At {
        std::size_t layer = 0;
        std::size_t execution = 0;  ///< index in the layer
    };
    const Trace* trace_;
    const std::vector<TracedLayer>* layers_;
    std::vector<At> at_;  ///< by index in Trace::executions
};

/// Fills in the layer's tensor, or its problem. The layers that it reads come before it.
///
/// Each step of a result reads at one distance from the place that the result stands for. The steps
/// of all results are laid over each other until every result has its place in the source's
/// coordinates; equal distances of those are the tensor's rows and columns. Channels come from the
/// source where results differ in the channel that they read; else from the order of the parameters
/// that the host sent. Where the reads of all sources do not lie on one grid, those of one that do
/// decide.
void gather(const Trace& trace, const Places& places, TracedLayer& layer);

}  // namespace reef::edgetpu::layers
