// What the simulated chip refuses of a program, each instruction by itself.
#include "edgetpu/sim/program/operation.h"
#include "edgetpu/sim/tile/tensor_engine.h"
#include "reef/edgetpu/program_check.h"

namespace reef::edgetpu {
namespace {

Status check_modelled(const Instruction& instruction) {
    const auto operation = REEF_TRY(sim::operation_of(instruction));
    const auto* tensor = std::get_if<sim::TensorOp>(&operation);
    if (tensor != nullptr) REEF_CHECK(sim::shape_of(*tensor));
    return {};
}

}  // namespace

std::vector<ProgramFault> unmodelled_instructions(std::span<const Bytes> chunks) {
    std::vector<ProgramFault> out;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
        InstructionCursor cursor(chunks[chunk]);
        while (const auto instruction = cursor.next()) {
            if (instruction->info == nullptr) continue;
            if (auto refused = check_modelled(*instruction); !refused)
                out.push_back({chunk, instruction->word, std::move(refused.error().what), true});
        }
    }
    return out;
}

}  // namespace reef::edgetpu
