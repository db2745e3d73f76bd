// Passes that hold for every chip: what needs no instructions is folded into its readers.
#pragma once

#include <map>
#include <string>

#include "compiler/graph.h"

namespace reef::compiler {

/// Nodes that stay on the CPU whatever a chip can do, with the reason.
using Excluded = std::map<std::size_t, std::string>;

/// - excluded nodes are Unknown;
/// - a RESHAPE that keeps every channel in its pixel and a QUANTIZE to the same scale are Folded;
/// - a PAD, and a RESHAPE to one pixel, whose readers are all convolutions are Folded into their
///   windows, kernels up to `most_taps` pixels large;
/// - a RESHAPE that only the CPU reads is Folded;
/// - a depthwise convolution of one channel, or whose results' words are made of several words of
/// its
///   input, is an ordinary one.
/// Readers of a Folded node read its input.
void legalise(Graph& graph, const Excluded& excluded, std::int64_t most_taps);

/// The value whose bytes `value` has: itself but behind Folded nodes that give their input.
[[nodiscard]] ValueId source_of(const Graph& graph, ValueId value);

}  // namespace reef::compiler
