// What a chip brings besides its driver: an inspector of files, a disassembler, a debugger, ...
#pragma once

#include <string_view>

namespace reef::chip {

/// Each kind is an interface derived from Part, which whoever uses it defines; a chip enrols
/// objects of it (runtime::Registry), and the user finds them by the interface.
class Part {
  public:
    Part() = default;
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    virtual ~Part() = default;
    /// As runtime::Driver::family() of the chip.
    [[nodiscard]] virtual std::string_view family() const = 0;
};

}  // namespace reef::chip
