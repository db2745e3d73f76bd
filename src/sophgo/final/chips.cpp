#include "sophgo/final/chips.h"

#include <array>

namespace reef::sophgo {
namespace {

struct LocalMemory {
    std::string_view chip;
    Region region;
};

// From the address maps of TPU-MLIR's backends (grade: read in source; bm1690's in a file, too).
constexpr std::array local_memories = {
    LocalMemory{"bm1684x", {0x10000000, 0x1fb000}},
    LocalMemory{"bm1690", {30ULL << 40, 128ULL << 20}},
    LocalMemory{"bm1690", {0x6980000000, 128ULL << 20}},
    LocalMemory{"bm1690e", {30ULL << 40, 16ULL << 20}},
    LocalMemory{"bm1690e", {0x6980000000, 16ULL << 20}},
};

}  // namespace

bool in_local_memory(std::string_view chip, const Value& value) {
    for (const LocalMemory& memory : local_memories)
        if (memory.chip == chip && memory.region.holds(value)) return true;
    return false;
}

}  // namespace reef::sophgo
