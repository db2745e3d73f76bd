// A transposed convolution as ordinary ones, each for the pixels of one phase of its result.
#pragma once

#include <utility>
#include <vector>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {

/// `whole.window` goes from the result to the input.
[[nodiscard]] std::vector<std::pair<compiler::Convolution, Phase>> phases_of(
    const compiler::Convolution& whole);

}  // namespace reef::edgetpu::lowering
