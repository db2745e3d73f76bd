// Operators whose inputs, outputs, options or quantisation are not those that they must have.
#pragma once

#include <functional>
#include <string>

#include "reef/model/graph.h"

namespace reef::plain {

/// `visit(model, name)` with cases of every operator that is compared, whole and with one change
/// each: an input gone, absent, twice or another one, an output twice, no quantisation, the least
/// and the greatest scale, no options. Until it gives false.
void each_malformed(
    std::uint64_t seeds,
    const std::function<bool(const model::Model& model, const std::string& name)>& visit);

}  // namespace reef::plain
