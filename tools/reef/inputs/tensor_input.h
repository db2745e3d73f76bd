// Files to the bytes of a graph's inputs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "inputs/image_input.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// One entry per graph input, in the graph's order, each as long as its tensor.
using InputBytes = std::vector<std::vector<std::byte>>;

/// Reads what --input gave: .npy, .npz (members in0... or named as the inputs, or a single one),
/// pictures, raw bytes; file formats are told apart by their first bytes. Every input must be given
/// exactly once. Errors: bad_argument (a missing, doubled or unknown input), bad_input with the
/// file as place (shape, element type, damage), and those of read_file.
[[nodiscard]] Result<InputBytes> load_inputs(const model::Subgraph& graph,
                                             std::span<const std::string> specs,
                                             const PictureRules& pictures = {});

/// "input 0 'image', 1x224x224x3 uint8".
[[nodiscard]] std::string describe_input(const model::Subgraph& graph, std::size_t position);

}  // namespace reef::tool
