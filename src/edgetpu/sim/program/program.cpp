#include "program.h"

#include <fmt/format.h>

namespace reef::edgetpu::sim {

std::uint8_t engine_of(const Operation& operation) {
    return std::visit(
        []<typename Op>(const Op& op) -> std::uint8_t {
            constexpr bool none = std::is_same_v<Op, Fence> || std::is_same_v<Op, ScalarWork> ||
                                  std::is_same_v<Op, Sync> || std::is_same_v<Op, Infeed> ||
                                  std::is_same_v<Op, RingPush> || std::is_same_v<Op, RingPop>;
            if constexpr (none)
                return no_engine;
            else
                return static_cast<std::uint8_t>(program::engine_of_kind(op));
        },
        operation);
}

std::string place_of(const ProgramInstruction& instruction) {
    return fmt::format("word {:#06x} {}", instruction.source.word, instruction.source.info->name);
}

}  // namespace reef::edgetpu::sim
