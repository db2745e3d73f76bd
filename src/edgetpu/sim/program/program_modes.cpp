// What no known program has, and the simulator therefore refuses instead of guessing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "program.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::string_view unseen =
    "no known program does this, and what the chip would do is unknown: compile the model again; "
    "if a compiler wrote it so, report the file";

/// Of each instruction, the fields whose values are listed in the description or have names in it.
using Listed = std::array<std::vector<const FieldInfo*>, std::size(spec::instructions)>;

const Listed& listed_fields() {
    // Never destroyed: a chip may compute on a thread of its own until the process ends.
    static const auto& all = *new Listed([] {
        Listed fields;
        for (std::size_t i = 0; i < fields.size(); ++i)
            for (const auto& field : spec::instructions[i].fields)
                if (!field.seen.empty() || field.kind == FieldKind::enumeration)
                    fields[i].push_back(&field);
        return fields;
    }());
    return all;
}

std::unexpected<Error> refused(const std::string& what) {
    return fail(Cause::unsupported, "not modelled: " + what, {}, std::string(unseen));
}

/// The description's word on one field: the only place where a value is refused for itself.
Status check_listed(const FieldInfo& field, std::uint64_t bits) {
    if (field.seen.empty()) {
        if (field.enumeration->find(bits) != nullptr) return {};
        return refused(fmt::format("{}={:#x} at bit {}, which is no {}", field.name, bits,
                                   field.position, field.enumeration->name));
    }
    if (std::ranges::find(field.seen, bits) != field.seen.end()) return {};
    if (field.seen.size() == 1)
        return refused(fmt::format("{}={:#x} at bit {}, which is {:#x} in every known program",
                                   field.name, bits, field.position, field.seen.front()));
    return refused(fmt::format("{}={:#x} at bit {}; known programs have {:#x}", field.name, bits,
                               field.position, fmt::join(field.seen, ", ")));
}

/// Whether the nest visits multiples of so many units only.
bool aligned(const LoopNest& nest, std::int32_t units) {
    bool all = nest.base % units == 0 && nest.rotate_size % units == 0;
    for (unsigned d = 0; d < nest.dimensions; ++d)
        all = all && (nest.count[d] == 1 || nest.step[d] % units == 0);
    return all;
}

// A row of wide memory has four bytes for each lane, and addresses are quarters of a row: which of
// the four bytes a step begins with.
Status check_quarters(const TensorOp& op) {
    const auto bytes = static_cast<std::int32_t>(op.elements() * (op.par_16bit ? 2U : 1U));
    if (!aligned(op.par, bytes))
        return refused(fmt::format("par within the {} bytes that a step reads of a lane", bytes));
    constexpr std::int32_t bytes_of_sum = 4;
    if (!op.acc_internal && !aligned(op.acc, bytes_of_sum))
        return refused("sums in wide memory that do not begin at a row");
    return {};
}

Status check_tensor_modes(const TensorOp& op) {
    if (op.single != op.single_par) return refused("single and single_par that differ");
    if (op.table_normalised && !op.table) return refused("table_normalised without table");
    if (op.table_odd && !op.table) return refused("table_odd without table");
    if (op.table_odd && op.table_normalised) return refused("table_odd with table_normalised");
    if (!op.out_16bit && op.out_zero > 0xff)
        return refused(fmt::format("out_zero {} of 8-bit results", op.out_zero));
    if (!op.in_16bit && op.in_zero > 0xff)
        return refused(fmt::format("in_zero {} of 8-bit activations", op.in_zero));
    if (!op.par_16bit && op.par_zero > 0xff)
        return refused(fmt::format("par_zero {} of 8-bit parameters", op.par_zero));
    const bool same_crop =
        op.acc.crop_level == op.loops.crop_level && op.acc.crop_count == op.loops.crop_count;
    if (op.acc.crop_level != 0 && !same_crop)
        return refused("a crop of acc other than that of the loops");
    if (!op.in_bytewise &&
        !aligned(op.in, static_cast<std::int32_t>(op.elements() * (op.in_16bit ? 2U : 1U))))
        return refused("in with addresses that are not multiples of a step, without in_bytewise");
    return check_quarters(op);
}

// The zero point of a maximum is taken off the operands and added to the result. Where the operand
// comes by single bytes it stands in in_zero, else in par_zero.
Status check_max(const TensorOp& op) {
    const std::int32_t zero = op.single ? op.in_zero : op.par_zero;
    if (op.in_zero != 0 && !op.single) return refused("max with in_zero, but not of single bytes");
    if (op.par_zero != 0 && op.single) return refused("max of single bytes with par_zero");
    if (zero != 0 && (op.start_value != -zero || op.out_zero != zero))
        return refused(fmt::format("max with the zero point {}, initial {} and out_zero {}", zero,
                                   op.start_value, op.out_zero));
    if (op.in_16bit || op.par_16bit || op.out_16bit) return refused("max of 16-bit values");
    return {};
}

// A pixel of a blend has a weight of 128 or less in either direction; a copy has none.
Status check_resize(const TensorOp& op) {
    const auto& [x, y, pixel_stride, row_stride, marked] = op.resize;
    if (x.nearest != y.nearest || x.nearest != marked)
        return refused("x.nearest, y.nearest and unknown_2093 that differ");
    const std::uint32_t taps = x.nearest ? 1 : 2;
    if (op.loops.count[0] != taps || op.loops.count[1] != taps)
        return refused(
            fmt::format("resizing with {} x {} taps", op.loops.count[0], op.loops.count[1]));
    if (op.scale != (x.nearest ? 1.0F : 0x1p-14F))
        return refused(fmt::format("resizing with scale {}", op.scale));
    return {};
}

// Whose dimension 0 is the side of a matrix, so that a crop may mean two things.
Status check_copy(const NarrowToWide& op) {
    const auto& src = op.src;
    if (op.format == spec::RowFormat::transpose_halfwords_ && src.crop_level != 0 &&
        (src.crop_count != src.count[0] || src.crop_count != src.count[1]))
        return refused("a crop of src with transposed halfwords");
    if (src.crop_dimension >= src.crop_level && src.crop_level != 0)
        return refused("a crop of src at its own level");
    return {};
}

// 0 is as 1 where there is one group, or several of rows in a row.
Status check_head(const RingReceive& op) {
    if (op.head.enabled && op.head.level == 0 && op.dst.passes_from(2) != 1)
        return refused("head.level 0 with dst of more than two dimensions");
    return {};
}

}  // namespace

Status check_modes(const Instruction& instruction, const Operation& operation) {
    const auto index = static_cast<std::size_t>(instruction.info - spec::instructions);
    for (const FieldInfo* field : listed_fields()[index])
        REEF_CHECK(check_listed(*field, instruction.bits(*field)));
    if (const auto* op = std::get_if<NarrowToWide>(&operation)) return check_copy(*op);
    if (const auto* op = std::get_if<RingReceive>(&operation)) return check_head(*op);
    const auto* op = std::get_if<TensorOp>(&operation);
    if (op == nullptr) return {};
    if (op->kind == TensorKind::max) REEF_CHECK(check_max(*op));
    if (op->kind == TensorKind::resize) REEF_CHECK(check_resize(*op));
    return check_tensor_modes(*op);
}

}  // namespace reef::edgetpu::sim
