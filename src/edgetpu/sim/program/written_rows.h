// Which rows of wide memory a program writes, and which keep what they hold as long as it runs:
// parameters that an earlier program has loaded.
#pragma once

#include <bitset>

#include "memory.h"
#include "program.h"

namespace reef::edgetpu::sim {

/// Of all tiles together: programs have their parameters in the same rows of each.
class WrittenRows {
  public:
    /// All that the instruction may write, whatever it waits for.
    void include(const Operation& operation);
    /// Whether no included instruction writes any of the nest's rows. False where the nest leaves
    /// the memory.
    [[nodiscard]] bool are_kept(const Nest& rows) const;

  private:
    /// Addresses of `per_row` to a row.
    void include(const Nest& nest, std::int32_t per_row);
    void include(std::int32_t row);

    std::bitset<wide_rows> written_;
};

}  // namespace reef::edgetpu::sim
