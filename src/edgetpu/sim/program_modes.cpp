// What no known program has, and the simulator therefore refuses instead of guessing.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "program.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::string_view unseen =
    "no known program does this, and what the chip would do is unknown: compile the model again; "
    "if a compiler wrote it so, report the file";

/// Of each instruction, the fields that have one value in every known program.
using Steady = std::array<std::vector<const FieldInfo*>, std::size(spec::instructions)>;

const Steady& steady_fields() {
    static const Steady all = [] {
        Steady fields;
        for (std::size_t i = 0; i < fields.size(); ++i)
            for (const auto& field : spec::instructions[i].fields)
                if (field.only >= 0) fields[i].push_back(&field);
        return fields;
    }();
    return all;
}

std::unexpected<Error> refused(const std::string& what) {
    return fail(Cause::unsupported, "not modelled: " + what, {}, std::string(unseen));
}

/// Whether the nest visits multiples of the bytes that a step reads.
bool aligned(const TensorOp& op) {
    const auto unit = static_cast<std::int32_t>(op.elements() * (op.in_16bit ? 2U : 1U));
    bool all = op.in.base % unit == 0 && op.in.rotate_size % unit == 0;
    for (unsigned d = 0; d < op.in.dimensions; ++d)
        all = all && (op.in.count[d] == 1 || op.in.step[d] % unit == 0);
    return all;
}

Status check_tensor_modes(const Instruction& instruction, const TensorOp& op) {
    namespace n = spec::field::mac;
    const auto number = [&](unsigned field) {
        return instruction.value(instruction.info->fields[field]);
    };
    if (number(n::single) != number(n::single_par))
        return refused("single and single_par that differ");
    if (op.table_normalised && !op.table) return refused("table_normalised without table");
    if (!op.out_16bit && op.out_zero > 0xff)
        return refused(fmt::format("out_zero {} of 8-bit results", op.out_zero));
    if (!op.in_16bit && number(n::in_zero) > 0xff)
        return refused(fmt::format("in_zero {} of 8-bit activations", number(n::in_zero)));
    if (!op.par_16bit && number(n::par_zero) > 0xff)
        return refused(fmt::format("par_zero {} of 8-bit parameters", number(n::par_zero)));
    if (number(n::in_bytewise) == 0 && !aligned(op))
        return refused("in with addresses that are not multiples of a step, without in_bytewise");
    return {};
}

}  // namespace

Status check_modes(const Instruction& instruction, const Operation& operation) {
    const auto index = static_cast<std::size_t>(instruction.info - spec::instructions);
    for (const FieldInfo* field : steady_fields()[index])
        if (const auto bits = instruction.bits(*field); bits != static_cast<unsigned>(field->only))
            return refused(fmt::format("{}={:#x} at bit {}, which is {:#x} in every known program",
                                       field->name, bits, field->position, field->only));
    if (const auto* op = std::get_if<TensorOp>(&operation))
        return check_tensor_modes(instruction, *op);
    return {};
}

}  // namespace reef::edgetpu::sim
