// Comments for symbolic text: where control goes, and what a DMA descriptor says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "edgetpu/program/instruction.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::program {

/// Follows the scalar registers through straight-line code as far as their values are known, so
/// that a fired descriptor can be told in words.
class Annotator {
  public:
    /// The comment for the next instruction of the stream, empty when there is none.
    void comment(const Instruction& instruction, std::string& out);

  private:
    using Known = std::optional<std::uint32_t>;

    void bundle(const Bundle& bundle, std::string& out);
    void store(const Bundle::Store& store, std::string& out);
    [[nodiscard]] Known result(const Bundle& bundle) const;
    void forget() { registers_.fill(std::nullopt); }

    std::array<Known, 32> registers_{};
    std::array<Known, 4> descriptor_{};  ///< by spec::DescriptorWord
};

}  // namespace reef::edgetpu::program
