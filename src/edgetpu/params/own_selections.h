// Zeros and ones by which programs of Reef's compiler move channels that do not begin at a word.
#pragma once

#include <vector>

#include "edgetpu/params/plain_graph.h"
#include "edgetpu/params/selections.h"

namespace reef::edgetpu {

/// Those that an operator may need: CONCATENATION of channels, SPLIT and its like,
/// SPACE_TO_DEPTH and DEPTH_TO_SPACE.
[[nodiscard]] std::vector<Selection> own_selections_of(const PlainGraph& graph,
                                                       const model::Operator& op);

}  // namespace reef::edgetpu
