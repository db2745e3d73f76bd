// Which tensor instructions compute one tensor.
#pragma once

#include <vector>

#include "edgetpu/layers/traced_layer.h"

namespace reef::edgetpu::layers {

/// In the order of their first instruction.
[[nodiscard]] std::vector<TracedLayer> find_layers(const Trace& trace);

}  // namespace reef::edgetpu::layers
