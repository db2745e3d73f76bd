#include "tile_events.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::check {
namespace {

consteval unsigned tile_counter(std::string_view name) {
    return number_of(name, spec::tile_counter_values);
}
consteval unsigned scalar_counter(std::string_view name) {
    return number_of(name, spec::scalar_counter_values);
}
consteval unsigned tile_engine(std::string_view name) {
    return number_of(name, spec::tile_engine_values);
}

const FieldGroup* find_group(const InstructionInfo& info, std::string_view name) {
    const auto it = std::ranges::find(info.groups, name, &FieldGroup::name);
    return it == info.groups.end() ? nullptr : &*it;
}

/// One signal: which group, what it counts, over the passes of which nest. Where a flag of the
/// instruction decides, `flag` names it and `counter_if_set` is the other counter.
struct SignalRule {
    unsigned op;
    std::string_view group;
    std::string_view nest;
    unsigned counter;
    std::string_view flag = {};
    unsigned counter_if_set = 0;
};

constexpr SignalRule signal_rules[] = {
    {spec::op::ring_send, "signal.ring_write", "src", tile_counter("RING_WRITE")},
    {spec::op::ring_send, "signal.producer", "src", tile_counter("RING_PRODUCER_A"), "ring_b",
     tile_counter("RING_PRODUCER_B")},
    {spec::op::ring_receive_a, "signal.ring_read", "dst", tile_counter("RING_READ_A")},
    {spec::op::ring_receive_b, "signal.ring_read", "dst", tile_counter("RING_READ_B")},
    {spec::op::narrow_to_wide, "signal.narrow_to_wide", "dst", tile_counter("NARROW_TO_WIDE")},
    {spec::op::wide_to_narrow, "signal.written", "dst", tile_counter("WIDE_TO_NARROW"),
     "to_scaling", tile_counter("WIDE_TO_SCALING")},
    {spec::op::mesh_south, "signal.out", "src", tile_counter("MESH_SOUTH_OUT")},
    {spec::op::mesh_south, "signal.in", "dst", tile_counter("MESH_NORTH_IN")},
    {spec::op::mesh_west, "signal.out", "src", tile_counter("MESH_WEST_OUT")},
    {spec::op::mesh_west, "signal.in", "dst", tile_counter("MESH_EAST_IN")},
    {spec::op::mesh_north, "signal.out", "src", tile_counter("MESH_NORTH_OUT")},
    {spec::op::mesh_north, "signal.in", "dst", tile_counter("MESH_SOUTH_IN")},
    {spec::op::mesh_east, "signal.out", "src", tile_counter("MESH_EAST_OUT")},
    {spec::op::mesh_east, "signal.in", "dst", tile_counter("MESH_WEST_IN")},
    {spec::op::infeed, "signal.infeed", "dst", scalar_counter("PARAMETER_POP"), "source",
     scalar_counter("AVDATA_POP")},
    {spec::op::ring_push, "signal.producer", "src", scalar_counter("PRODUCER_A")},
    {spec::op::ring_pop, "signal.outfeed", "dst", scalar_counter("RING_OUTFEED")},
};

constexpr unsigned fifo_infeed_counters[] = {scalar_counter("PARAMETER_INFEED"),
                                             scalar_counter("AVDATA_INFEED"),
                                             scalar_counter("SCALAR_INFEED")};

constexpr SignalRule tensor_rules[] = {
    {0, "signal.avdata", "out", tile_counter("AVDATA")},
    {0, "signal.parameters", "par", tile_counter("PARAMETERS")},
    {0, "signal.partial_sums", "loop", tile_counter("PARTIAL_SUMS")},
};

bool is_tensor(const Instruction& instruction) {
    return find_group(*instruction.info, "loop") != nullptr;
}

void add_signal(const Instruction& instruction, const SignalRule& rule, unsigned counter,
                Few<Production>& out) {
    const auto* group = find_group(*instruction.info, rule.group);
    assert(group && "isa.xml has the signals that are named here");
    const auto fields = instruction.info->fields.subspan(group->first, group->count);
    if (instruction.bits(fields[0]) == 0) return;
    const auto level = static_cast<unsigned>(instruction.bits(fields[1]));
    out.add({counter, nest_of(instruction, rule.nest).from(level)});
}

/// The nest whose passes a wait counts.
std::string_view nest_of_wait(const Instruction& instruction, bool destination) {
    if (is_tensor(instruction)) return "loop";
    if (!find_group(*instruction.info, "dst")) return "src";
    if (!find_group(*instruction.info, "src")) return "dst";
    return destination ? "dst" : "src";
}

}  // namespace

NestPasses passes_of(const Instruction& instruction, const FieldGroup& group) {
    NestPasses out{.dimensions = group.dimensions};
    const auto fields = instruction.info->fields.subspan(group.first, group.count);
    unsigned limits = 0;
    for (const auto& field : fields) {
        if (field.kind == FieldKind::limit && limits < group.dimensions)
            out.counts[limits++] = instruction.bits(field) + 1;
        if (field.name.ends_with(".crop.last")) out.cropped_count = instruction.bits(field) + 1;
        if (field.name.ends_with(".crop.level"))
            out.crop_level = static_cast<unsigned>(instruction.bits(field));
    }
    return out;
}

NestPasses nest_of(const Instruction& instruction, std::string_view name) {
    const auto* group = find_group(*instruction.info, name);
    assert(group);
    return passes_of(instruction, *group);
}

unsigned engine_of(const Instruction& instruction) {
    static constexpr std::pair<unsigned, unsigned> engines[] = {
        {spec::op::wide_to_narrow, tile_engine("WIDE_TO_NARROW")},
        {spec::op::narrow_to_wide, tile_engine("NARROW_TO_WIDE")},
        {spec::op::ring_receive_a, tile_engine("RING_CONSUMER_0")},
        {spec::op::ring_receive_b, tile_engine("RING_CONSUMER_1")},
        {spec::op::ring_send, tile_engine("RING_PRODUCER")},
        {spec::op::mesh_south, tile_engine("MESH_0")},
        {spec::op::mesh_west, tile_engine("MESH_1")},
        {spec::op::mesh_north, tile_engine("MESH_2")},
        {spec::op::mesh_east, tile_engine("MESH_3")},
    };
    for (const auto& [op, engine] : engines) {
        if (is(instruction, op)) return engine;
    }
    return tile_engine("OP");
}

Few<Production> productions_of(const Instruction& instruction) {
    Few<Production> out;
    if (is_tensor(instruction)) {
        for (const auto& rule : tensor_rules) add_signal(instruction, rule, rule.counter, out);
        return out;
    }
    for (const auto& rule : signal_rules) {
        if (!is(instruction, rule.op)) continue;
        const bool other = !rule.flag.empty() && instruction.value(rule.flag).value_or(0) != 0;
        add_signal(instruction, rule, other ? rule.counter_if_set : rule.counter, out);
    }
    const auto fifo = instruction.bits(spec::ring_push_fields[spec::field::ring_push::source]);
    if (is(instruction, spec::op::ring_push) && fifo < std::size(fifo_infeed_counters))
        add_signal(instruction, {spec::op::ring_push, "signal.pop", "src", 0},
                   fifo_infeed_counters[fifo], out);
    return out;
}

Few<Demand> demands_of(const Instruction& instruction) {
    Few<Demand> out;
    unsigned number = 0;
    for (const auto& group : instruction.info->groups) {
        if (group.kind != GroupKind::wait) continue;
        const auto wait = number++;
        const auto fields = instruction.info->fields.subspan(group.first, group.count);
        // counter, level, start, step, enable, and side where there are two nests
        if (instruction.bits(fields[4]) == 0) continue;
        const bool destination = fields.size() > 5 && instruction.bits(fields[5]) != 0;
        const auto nest = nest_of(instruction, nest_of_wait(instruction, destination));
        const auto passes = nest.from(static_cast<unsigned>(instruction.bits(fields[1])));
        constexpr std::uint64_t most_passes = std::uint64_t{1} << 40;
        const auto start = instruction.value(fields[2]);
        const auto growth =
            instruction.value(fields[3]) *
            static_cast<std::int64_t>(std::clamp<std::uint64_t>(passes, 1, most_passes) - 1);
        out.add({static_cast<unsigned>(instruction.bits(fields[0])), start, start + growth, wait,
                 destination});
    }
    return out;
}

}  // namespace reef::edgetpu::check
