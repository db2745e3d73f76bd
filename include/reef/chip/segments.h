// A network as a pipeline: segments that chips of one kind compute one behind the other.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/model/part.h"

namespace reef::chip {

/// Estimated seconds of an inference of such a part, transfers included. Errors: unsupported for
/// one that is no segment; others end the search.
using SegmentCost = std::function<Result<double>(const model::Part& part)>;

using SegmentProgress = std::function<void(double done)>;

/// Divides the operators of the first subgraph into `count` ranges whose slowest is as fast as
/// moving one border at a time makes it. Tensors may go from a segment to any later one, by name.
/// `progress` is told from 0 to 1 how far the search is. Errors: bad_argument for a count of zero;
/// unsupported for one above the number of operators and when no borders are found with which all
/// ranges are segments; those of the cost.
[[nodiscard]] Result<std::vector<model::OperatorRange>> segments_of(
    const model::Model& model, std::size_t count, const SegmentCost& cost,
    const SegmentProgress& progress = {});

/// Options for a part of a network, so that it has on the chip what the whole has there. `whole`:
/// what compiling that with the same options made of its operators, all of them in their order.
[[nodiscard]] CompileOptions options_of_part(CompileOptions options,
                                             std::span<const CompiledOperator> whole,
                                             const model::Part& part);

}  // namespace reef::chip
