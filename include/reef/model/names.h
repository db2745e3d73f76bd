// Names of tensors that tell them apart: files need not have them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reef/model/graph.h"

namespace reef::model {

/// Of each tensor. Inputs are told apart from one another, outputs likewise, and every other tensor
/// that an operator writes or that keeps its value from all of those: an input and an output may
/// have one name. What has a name of its own keeps it. The same graph gives the same names.
[[nodiscard]] std::vector<std::string> distinct_names(const Subgraph& graph);

/// The model with such names in its first subgraph; nothing where it has them already.
[[nodiscard]] std::optional<Model> with_distinct_names(const Model& model);

}  // namespace reef::model
