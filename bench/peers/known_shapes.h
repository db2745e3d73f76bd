// Networks that are known by their shapes, with random weights: what a network costs does not
// depend on them. Their files are not at hand everywhere, and float32 forms are rarely published.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

/// "resnet50:int8", ...: a network and its element type.
[[nodiscard]] std::vector<std::string> known_shapes();

/// Error (bad_argument): no such network or type.
[[nodiscard]] Result<model::Model> network_of_shape(std::string_view name);

}  // namespace reef::peers
