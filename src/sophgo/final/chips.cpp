#include "sophgo/final/chips.h"

#include <array>

#include "reef_spec/sophgo_machine.h"

namespace reef::sophgo {
namespace {

struct LocalMemory {
    std::string_view chip;
    Region region;
};

constexpr std::array local_memories = {
    LocalMemory{"bm1684x", {spec::bm1684x_l2_address, spec::bm1684x_l2_bytes}},
    LocalMemory{"bm1684x2", {spec::bm1684x2_tagged_address, spec::bm1684x2_tagged_bytes}},
    LocalMemory{"bm1690", {spec::bm1690_l2_address, spec::bm1690_l2_bytes}},
    LocalMemory{"bm1690", {spec::bm1690_l2_alias_address, spec::bm1690_l2_bytes}},
    LocalMemory{"bm1690e", {spec::bm1690_l2_address, spec::bm1690e_l2_bytes}},
    LocalMemory{"bm1690e", {spec::bm1690_l2_alias_address, spec::bm1690e_l2_bytes}},
};

}  // namespace

bool in_local_memory(std::string_view chip, const Value& value) {
    for (const LocalMemory& memory : local_memories)
        if (memory.chip == chip && memory.region.holds(value)) return true;
    return false;
}

}  // namespace reef::sophgo
