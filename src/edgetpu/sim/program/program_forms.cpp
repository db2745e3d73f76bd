// Rules of form that every known program keeps. The engines take no notice of what these fields
// say, so that a program which breaks a rule may mean something that nobody has seen.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "program.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

std::unexpected<Error> broken(const std::string& what) {
    return fail(Cause::unsupported, "not modelled: " + what, {},
                "every known program keeps this rule, and what the chip would do is unknown: "
                "compile the model again; if a compiler wrote it so, report the file");
}

std::span<const FieldInfo> fields_of(const Instruction& instruction, const FieldGroup& group) {
    return std::span(instruction.info->fields).subspan(group.first, group.count);
}

/// What is not enabled says nothing else.
Status check_disabled(const Instruction& instruction, const FieldGroup& group) {
    const auto fields = fields_of(instruction, group);
    const auto enable = std::ranges::find_if(
        fields, [](const FieldInfo& field) { return field.name.ends_with(".enable"); });
    if (enable == fields.end() || instruction.bits(*enable) != 0) return {};
    for (const auto& field : fields)
        if (instruction.bits(field) != 0)
            return broken(fmt::format("{}={:#x} without {}", field.name, instruction.bits(field),
                                      enable->name));
    return {};
}

/// The mask names all dimensions that move and none that have no stride; a crop says by how much it
/// shortens the way.
Status check_nest(const Instruction& instruction, const FieldGroup& group,
                  unsigned crop_dimension) {
    const LoopNest nest = read_loop_nest(instruction.bytes, *instruction.info, group);
    const Strides strides = strides_of(nest);
    std::uint32_t strided = 0, moving = 0;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        if (strides[d] == 0) continue;
        strided |= 1U << d;
        if (nest.count[d] > 1) moving |= 1U << d;
    }
    if ((nest.mask & ~strided) != 0 || (moving & ~nest.mask) != 0)
        return broken(fmt::format("{}.mask={:#x}, where dimensions {:#x} move", group.name,
                                  nest.mask, moving));
    const FieldInfo& left_out = fields_of(instruction, group).back();
    const std::uint64_t visits = std::uint64_t{nest.count[crop_dimension]} - nest.crop_count;
    const std::uint64_t expected = nest.crop_level == 0 ? 0 : visits * strides[crop_dimension];
    const std::uint64_t bits = (std::uint64_t{1} << left_out.width) - 1;
    if (nest.crop_left_out != (expected & bits))
        return broken(fmt::format("{}={}, where the crop leaves out {}", left_out.name,
                                  nest.crop_left_out, expected & bits));
    if (nest.crop_level == 0 && nest.crop_count != 1)
        return broken(
            fmt::format("{}.crop.last={} without a level", group.name, nest.crop_count - 1));
    return {};
}

/// Only bundles run on a condition; a condition without a gate says nothing.
Status check_gate(const Instruction& instruction) {
    namespace field = spec::field::bundle;
    const auto bits = [&](unsigned index) {
        return instruction.bits(instruction.info->fields[index]);
    };
    const bool bundle = instruction.info == &spec::instructions[spec::op::bundle];
    if (bits(field::gate) != 0 && !bundle) return broken("a gate");
    if (bits(field::gate) == 0 && (bits(field::predicate) != 0 || bits(field::sense) != 0))
        return broken("predicate or sense without a gate");
    return {};
}

/// What fields of one instruction say of each other.
struct Agreement {
    Status operator()(const program::Fence& o) const {
        if (o.expected_counters == 0 && o.expected != 0)
            return broken("expected without a counter");
        return {};
    }
    Status operator()(const program::Sync& o) const {
        for (std::size_t c = 0; c < o.expected.size(); ++c)
            if (o.expected[c] != 0 && (o.expected_counters >> c & 1U) == 0)
                return broken(fmt::format("expected{} of a counter that is not awaited", c));
        return {};
    }
    Status operator()(const program::WideToNarrow& o) const {
        if (o.row_level == 0 || o.row_level > o.dst.dimensions)
            return broken(fmt::format("row_level={}", o.row_level));
        if (o.skip.enabled && o.skip.level == 0) return broken("skip.level=0");
        if (o.skip.enabled && o.skip.last != o.skip.base + static_cast<int>(o.skip.count) - 1)
            return broken("skip.last is not skip.base and skip.limit");
        return {};
    }
    Status operator()(const program::NarrowToWide& o) const {
        if (o.base_indirect != (o.work.base_register != 0))
            return broken(fmt::format("base_indirect={:d} with base_register={}", o.base_indirect,
                                      o.work.base_register));
        if (o.row_level <= o.src.dimensions) return {};
        return broken(fmt::format("row_level={}", o.row_level));
    }
    Status operator()(const program::RingReceive& o) const {
        if (!o.head.enabled || o.head.count == o.head.rows) return {};
        return broken(
            fmt::format("head.limit={} with head.rows={}", o.head.count - 1, o.head.rows));
    }
    Status operator()(const program::Tensor& o) const {
        const LoopNest nothing{.dimensions = 8};
        if (o.kind != program::TensorKind::mac && o.in != nothing)
            return broken("an input nest where nothing is multiplied");
        const bool lanes = o.bias || o.lane_scale || o.par_zero_rows || !o.acc_internal;
        if (o.kind != program::TensorKind::mac && lanes)
            return broken("values of a lane, or sums in wide memory, where nothing is multiplied");
        if (o.kind == program::TensorKind::max && o.table) return broken("max with a table");
        if (o.kind == program::TensorKind::sum &&
            (o.in_16bit || o.in_bytewise || o.single || o.in_zero != 0))
            return broken("modes of an input where nothing is multiplied");
        if (o.kind == program::TensorKind::sum &&
            !(o.par_16bit && o.table_normalised && o.out_16bit))
            return broken("sum but of 16-bit values through a normalised table");
        return shared(o);
    }
    Status operator()(const program::Resize& o) const {
        const LoopNest nothing{.dimensions = 8};
        if (o.par != nothing || o.par_zero != 0 || o.in_zero != 0)
            return broken("parameters or zero points of a resize");
        if (o.table) return broken("a table in a resize");
        for (const LoopNest* nest : {&o.loops, &o.in, &o.out, &o.acc})
            if (nest->crop_level != 0) return broken("a crop in a resize");
        if (o.in.rotates()) return broken("a rotation of a resize's input");
        return shared(o);
    }
    Status operator()(const program::Mesh& o) const {
        if (o.fills || o.fill_value == 0) return {};
        return broken("fill_value without fill");
    }
    Status operator()(const auto&) const { return {}; }

  private:
    static Status shared(const program::TensorLoops& o) {
        if (!o.par_zero_rows &&
            (o.zero_row_first != 0 || o.zero_row_step != 0 || o.zero_row_last != 0))
            return broken("zero_row without par_zero_rows");
        return {};
    }
};

}  // namespace

Status check_forms(const Instruction& instruction, const program::Operation& operation) {
    REEF_CHECK(check_gate(instruction));
    const auto* copy = std::get_if<program::NarrowToWide>(&operation);
    for (const auto& group : instruction.info->groups) {
        REEF_CHECK(check_disabled(instruction, group));
        if (group.kind != hw::GroupKind::loop_nest) continue;
        const bool transposed = copy != nullptr && group.name == "src";
        REEF_CHECK(check_nest(instruction, group, transposed ? copy->src.crop_dimension : 0));
    }
    return std::visit(Agreement{}, operation);
}

}  // namespace reef::edgetpu::sim
