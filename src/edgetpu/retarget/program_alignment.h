// Which operator's values each tensor instruction of a program holds.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "edgetpu/program/instruction.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// A tensor instruction that requantises, of a program that computes. Refers to the package.
struct TensorInstruction {
    std::size_t op = 0, executable = 0, bitstream = 0;
    Instruction instruction;
};

/// In the order of execution; caching programs are left out. Errors: those of decode().
[[nodiscard]] Result<std::vector<TensorInstruction>> tensor_instructions(
    const std::vector<CompiledOperator>& operators);

/// A tensor instruction with a scale and a clamp of its own: any but a resize.
[[nodiscard]] bool requantises(const Instruction& instruction);
/// Its members. Precondition: requantises().
[[nodiscard]] program::Tensor typed_tensor(const Instruction& instruction);

/// Values that no tensor's quantisation enters: plain copies, SOFTMAX after its exponential, whose
/// output has TFLite's fixed scale 1/256, and in Reef's `own` programs copies that keep bytes, the
/// distances of SOFTMAX and the sixteenths of RESIZE_BILINEAR.
[[nodiscard]] bool independent_of_quantization(const Instruction& instruction, bool own);

/// "mac at word 0x34".
[[nodiscard]] std::string name_of(const Instruction& instruction);

/// For each instruction the index of its role. Instructions come in the order of the roles, those
/// of one role hold the same values, and every required role has one. Roles whose values are
/// `alike` for the caller count as one. Errors: unsupported when there is no such assignment, or
/// more than one.
[[nodiscard]] Result<std::vector<std::size_t>> align_in_order(
    const std::vector<Instruction>& instructions, const std::vector<Requantisation>& roles,
    const std::function<bool(const Instruction&, const Requantisation&)>& fits,
    const std::function<bool(std::size_t, std::size_t)>& alike);

}  // namespace reef::edgetpu
