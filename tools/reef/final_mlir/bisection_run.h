// Bisection by running: cuts that a user's command judges.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/sophgo/bisect.h"

namespace reef::tool {

/// The words as a shell takes them for one.
[[nodiscard]] std::string shell_quoted(std::string_view text);
/// "reef cut FILE --at NAMES -o ...".
[[nodiscard]] std::string cut_command(const std::string& file,
                                      const std::vector<std::string>& names);

/// Where narrowing down ended.
struct WrongUnit {
    sophgo::Unit unit;
    /// One of them is at fault; several only inside a group, whose other tensors nobody sees.
    std::vector<const sophgo::Operator*> suspects;
};

struct BisectionRun {
    std::string file;  ///< its folder holds the weights
    std::string_view text;
    std::string command;
    NamedArrays reference;
    sophgo::Tolerance tolerance;
    const sophgo::FinalProgram& program;
    std::vector<std::pair<std::vector<std::string>, bool>>
        steps;  ///< what was cut, and was it wrong

    /// Errors: those of cutting; io_failed for a command that ends otherwise than with 0 or 1.
    [[nodiscard]] Result<std::optional<WrongUnit>> narrow_down();

  private:
    [[nodiscard]] Result<bool> is_wrong(const sophgo::Unit& unit, const std::string& folder);
    [[nodiscard]] Result<bool> differs(const std::string& npz,
                                       const std::vector<std::string>& names);
};

}  // namespace reef::tool
