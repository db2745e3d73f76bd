// Tensors inside compiled programs, as the command prints them.
#pragma once

#include <string>
#include <vector>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/runtime/layer_dump.h"

namespace reef::tool {

using runtime::DumpedLayer;
using runtime::LayerDump;
using runtime::OperatorWithoutLayer;

/// How many were written into the folder, and those that were not with their reasons.
void print_layers_text(Console& console, const LayerDump& dump, const std::string& folder);
[[nodiscard]] Json layers_json(const LayerDump& dump);
/// "scale 0.0238, the plain model's 0.0236"; nothing without differences.
[[nodiscard]] std::string differences_text(const chip::LayerMatch& match);
[[nodiscard]] Json differences_json(const chip::LayerMatch& match);
[[nodiscard]] Json names_json(const std::vector<OperatorWithoutLayer>& operators);

}  // namespace reef::tool
