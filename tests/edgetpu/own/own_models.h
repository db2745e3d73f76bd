// Small networks that Reef compiles itself: fixtures that need no reference data.
#pragma once

#include <string>
#include <vector>

#include "reef/chip/compiler.h"
#include "reef/model/graph.h"

namespace reef::test {

struct OwnModel {
    std::string name;
    model::Model plain;
    model::Model compiled;
};

/// The networks of apps/ and nine of convolutions, sums and dense layers, all small; made once.
/// Tensors of "skipping" lie in the host's memory in between. The
/// last has two programs, with an operator of the CPU between them.
[[nodiscard]] const std::vector<OwnModel>& own_models();

/// How the compiler may be asked for a network.
[[nodiscard]] chip::CompileOptions options_in_turn(unsigned seed);

}  // namespace reef::test
