// Constants of element-wise operators, chosen by every value that their operands can have.
#pragma once

#include <cstddef>
#include <optional>

#include "rk3588/compiler/lowering.h"

namespace reef::rk3588::lowering {

/// Scale and zero point (int8 domain) of a tensor of bytes.
struct ByteNumbers {
    float scale = 1;
    std::int32_t zero = 0;
};

struct ElementNumbers {
    ElementStep::Operation operation = ElementStep::Operation::sum;
    bool subtract = false;        ///< of a sum: the second operand is taken off
    ByteNumbers a{}, b{}, out{};  ///< b: not of a rescale
    Range range{};                ///< of the results
    bool float_factor = false;    ///< of a rescale: its scales are divided in float32
};

struct ElementGains {
    SumGains gains;
    std::size_t other = 0;  ///< values or pairs whose result is not TFLite's
};

/// Gains with the fewest results that are not TFLite's, over all values or pairs of values.
/// Nothing: the chip has no such gains.
[[nodiscard]] std::optional<ElementGains> best_gains(const ElementNumbers& numbers);

}  // namespace reef::rk3588::lowering
