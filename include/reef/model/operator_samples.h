// Networks of one operator each (behind a convolution where it only renames bytes): what a chip's
// compiler says of them is what it takes.
#pragma once

#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::model {

struct OperatorSample {
    std::string name;     ///< of the operator: "CONV_2D"
    std::string variant;  ///< what is particular about this one: "3 x 3, stride 2"
    Model model;
};

/// Of operators as 8-bit networks have them, those of one operator one behind the other. `type`:
/// uint8, weights with one scale; or int8, weights with a scale for each output channel where
/// TFLite has them so. The same at every call. Errors: bad_argument for other types.
[[nodiscard]] Result<std::vector<OperatorSample>> operator_samples(ElementType type);

}  // namespace reef::model
