// Arithmetics of chips, for sessions on the CPU alone.
#pragma once

#include <string_view>

#include "reef/chip/part.h"
#include "reef/cpu/placer.h"

namespace reef::runtime {

/// Enrolled by a chip whose arithmetic the CPU's kernels can stand in for.
class ChipArithmetic : public chip::Part {
  public:
    [[nodiscard]] virtual const cpu::Arithmetic& arithmetic() const = 0;
    /// What is different from TFLite's, in a few words.
    [[nodiscard]] virtual std::string_view sentence() const = 0;
};

}  // namespace reef::runtime
