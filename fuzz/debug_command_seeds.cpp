#include "seeds.h"

namespace reef::fuzz {

Result<Seeds> debug_command_seeds() {
    Seeds seeds;
    for (const std::string_view line :
         {"step layer 2", "s 10", "continue", "break 1:0:0xae done tile 3",
          "b write narrow any 0x100..0x13f", "delete 1", "reg scalarRegisterFile[4] = 0xff",
          "engines tile 3", "memory wide 0 0x81e 2",
          "tensor narrow 2 0x100 4x8x2 int8 strides 64,4,1", "list 0x34 5", "help break",
          "q # bye"}) {
        const auto* begin = reinterpret_cast<const std::byte*>(line.data());
        seeds.emplace_back("line" + std::to_string(seeds.size()),
                           std::vector<std::byte>(begin, begin + line.size()));
    }
    return seeds;
}

}  // namespace reef::fuzz
