// Which rows of wide memory a program writes, and which keep what they hold as long as it runs:
// parameters that an earlier program has loaded.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "memory.h"
#include "program.h"

namespace reef::edgetpu::sim {

/// Of all tiles together: programs have their parameters in the same rows of each.
class WrittenRows {
  public:
    /// All that the instruction may write, whatever it waits for; of a nest also what lies between
    /// its lowest and its highest row.
    void include(const Operation& operation);
    /// Whether no included instruction writes any of these rows. False where they leave the memory.
    [[nodiscard]] bool are_kept(const Nest& rows) const;

  private:
    using Range = std::pair<std::size_t, std::size_t>;
    /// First and last; all where there is nothing.
    void include(const std::optional<Range>& rows);

    std::array<bool, wide_rows> written_{};
};

}  // namespace reef::edgetpu::sim
