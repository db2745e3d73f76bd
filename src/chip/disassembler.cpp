#include "reef/chip/disassembler.h"

namespace reef::chip {

Result<std::vector<Program>> Disassembler::programs_in(const SharedBytes&) const {
    return std::vector<Program>{};
}

}  // namespace reef::chip
