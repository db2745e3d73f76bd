#include "program.h"

#include <fmt/format.h>

namespace reef::edgetpu::sim {

unsigned engine_of(const Operation& operation) {
    return std::visit([](const auto& o) { return program::engine_of_kind(o); }, operation);
}

std::string place_of(const ProgramInstruction& instruction) {
    return fmt::format("word {:#06x} {}", instruction.source.word, instruction.source.info->name);
}

}  // namespace reef::edgetpu::sim
