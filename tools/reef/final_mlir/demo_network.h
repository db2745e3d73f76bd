// A small final.mlir that is made here, with numbers for its tensors: for the demonstration and
// tests.
#pragma once

#include <string>

#include "reef/base/npy.h"
#include "reef/sophgo/final_program.h"

namespace reef::tool {

/// Two static functions: a cast in a group that runs a Load of the group behind it, which has two
/// results, a sum, a Reshape, int8 values; the second function multiplies by a weight. A canonical
/// print.
[[nodiscard]] std::string demo_network();

/// Numbers for every tensor that is computed: a wave whose phase is the name's. From `fault` on,
/// what that operator computes and what is computed from it are others; empty: nothing is.
[[nodiscard]] NamedArrays demo_tensors(const sophgo::FinalProgram& program,
                                       const std::string& fault);

}  // namespace reef::tool
