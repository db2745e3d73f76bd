// Inputs that nobody gave, drawn so that a model can run on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inputs/tensor_input.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"
#include "reef/model/part.h"

namespace reef::tool {

/// The same bytes for the same seed: integers of 8 and 16 bits over their whole range, wider ones
/// and booleans 0 or 1, floats in [-1, 1). Integers that indices are computed from are 0, divisors
/// 1, shapes what they must be: another value of these ends the run. Errors: unsupported for
/// element types of another kind.
[[nodiscard]] Result<InputBytes> random_inputs(const model::Subgraph& graph, std::uint64_t seed);

/// What the CPU gives a part of a plain model when the whole runs on random inputs, in the order of
/// the part's inputs. Errors: those of random_inputs(), of opening a session and of a run.
[[nodiscard]] Result<InputBytes> random_inputs_of_part(const model::Model& whole,
                                                       const model::PartEnds& ends,
                                                       std::uint64_t seed);

/// What --input gives, or random values from `seed` when it gives nothing.
[[nodiscard]] Result<InputBytes> inputs_or_random(const model::Subgraph& graph,
                                                  const std::vector<std::string>& specs,
                                                  std::uint64_t seed);

/// The error of a run on random inputs. Where inputs are integers, which may be indices or counts
/// that the model does not take as they were drawn, it says so.
[[nodiscard]] Error of_random_inputs(Error error, const model::Subgraph& graph);

}  // namespace reef::tool
