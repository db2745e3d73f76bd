// Comments for symbolic text: where control goes, and what a DMA descriptor says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// Follows the scalar registers through straight-line code as far as their values are known, so
/// that a fired descriptor can be told in words.
class Annotator {
  public:
    /// The comment for the next instruction of the stream, empty when there is none.
    void comment(const Instruction& instruction, std::string& out);

  private:
    using Known = std::optional<std::uint32_t>;

    void bundle(const Instruction& instruction, std::string& out);
    void store(const Instruction& instruction, std::string& out);
    [[nodiscard]] Known result(const Instruction& instruction) const;
    void forget() { registers_.fill(std::nullopt); }

    std::array<Known, 32> registers_{};
    std::array<Known, 4> descriptor_{};  ///< address low, address high, bytes, tag
};

}  // namespace reef::edgetpu
