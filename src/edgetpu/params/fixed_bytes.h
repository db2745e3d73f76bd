// What all layers of one shape have in common in a parameter blob.
#pragma once

#include <cstddef>
#include <vector>

#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {

struct FixedByte {
    std::size_t offset = 0;
    std::byte value{0};
};

/// Bytes of a layer's part that hold no weight, bias or multiplier: padding and zero points. All,
/// or `most` of them from its whole length. Errors: unsupported as for encode_part().
[[nodiscard]] Result<std::vector<FixedByte>> fixed_bytes(const model::Model& plain,
                                                         const ParameterPart& part,
                                                         std::size_t most);

}  // namespace reef::edgetpu
