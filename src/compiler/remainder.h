// The model that a compilation gives: the plain one with programs in place of what they compute.
#pragma once

#include <span>
#include <vector>

#include "compiler/partition.h"

namespace reef::compiler {

/// A program as an operator of the model.
struct ProgramOperator {
    model::OperatorCode code;
    SharedBytes options;
};

/// Tensors and buffers that nothing uses any more are left out. `programs`: as partition.programs.
[[nodiscard]] model::Model with_programs(const Graph& graph, const Partition& partition,
                                         std::span<const ProgramOperator> programs);

}  // namespace reef::compiler
