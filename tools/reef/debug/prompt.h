// Lines typed at a terminal.
#pragma once

#include <optional>
#include <string>

namespace reef::tool::debug {

/// With libedit, where the build has it, lines are edited, and the arrow keys bring earlier ones
/// back; else lines are read as the terminal gives them.
class Prompt {
  public:
    explicit Prompt(std::string text);
    /// The next line; nothing at the end of input. What was written to standard output before is
    /// to be flushed.
    [[nodiscard]] std::optional<std::string> line();

  private:
    std::string text_;
    std::string last_;  ///< in the history; a line given twice is there once
};

}  // namespace reef::tool::debug
