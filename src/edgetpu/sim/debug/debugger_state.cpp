// What the debugger shows of a simulated chip.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reef_spec/edgetpu_isa.h"
#include "simulated_debugger.h"

namespace reef::edgetpu {

const chip::DebugTables& debug_tables() {
    // By the numbers of ChipMemory.
    static constexpr MemoryInfo memories[] = {
        {"narrow", "byte", 1, sim::narrow_bytes, true},
        {"wide", "row", sim::row_bytes, sim::wide_rows, true},
        {"scaling", "word", sim::scaling_word_bytes, sim::scaling_words, true},
        {"scalar", "word", sizeof(std::uint32_t), sim::scalar_memory_words, false},
        {"parameters", "unit", sim::parameter_unit_bytes, sim::parameter_fifo_units, false},
        {"activations", "unit", sim::activation_unit_bytes, sim::activation_fifo_units, false}};
    static constexpr chip::RegisterFile files[] = {
        {"registers", "s", "the scalar core's registers", sim::scalar_registers, 32},
        {"predicates", "p", "its predicate registers", sim::scalar_predicates, 1}};
    static constexpr chip::DebugTables tables{
        .tile = "tile",
        .tile_hint = "a simulated chip has tiles 0 to 15; of a stick only the core can be seen",
        .memories = memories,
        .registers = files,
        .register_names = "s0 to s31, p0 to p7, on a stick any, by name or address",
        .memory_names =
            "a tile's narrow (by bytes), wide (rows) or scaling (words) memory, or of "
            "the core's scalar memory (words), parameters or activations (FIFO units)",
        .flips_signed = true,
        .word_bytes = word_bytes};
    return tables;
}

}  // namespace reef::edgetpu

namespace reef::edgetpu::sim {
namespace {

std::string_view unit_name(const ProgramInstruction& instruction, std::string_view nest) {
    const auto& op = instruction.operation;
    if (std::holds_alternative<TensorOp>(op)) {
        if (nest == "loop") return {};
        return nest == "in" || nest == "out" ? "byte" : "quarter row";
    }
    if (std::holds_alternative<MeshTransfer>(op)) return "word";
    if (std::holds_alternative<RingSend>(op) || std::holds_alternative<RingReceive>(op))
        return "row";
    if (std::holds_alternative<NarrowToWide>(op)) return nest == "src" ? "word" : "row";
    if (const auto* copy = std::get_if<WideToNarrow>(&op)) {
        if (nest == "src") return "row";
        return copy->to_scaling ? "scaling word" : "word";
    }
    return "unit";
}

NestState state_of(const ProgramInstruction& instruction, const EngineStatus::Walk& walk) {
    const Nest& nest = walk.cursor.nest();
    NestState state{.name = walk.nest,
                    .unit = unit_name(instruction, walk.nest),
                    .address = walk.cursor.done() ? 0 : walk.cursor.address(),
                    .done = walk.cursor.done(),
                    .visits_done = walk.cursor.passes(0),
                    .visits = nest.visits(),
                    .loops = {}};
    for (unsigned d = 0; d < nest.dimensions; ++d)
        if (nest.count[d] > 1) state.loops.push_back({walk.cursor.index(d), nest.count[d]});
    return state;
}

/// A register by its letter and number.
std::optional<std::size_t> numbered(std::string_view name, char letter, std::size_t count) {
    std::size_t number = 0;
    if (name.size() < 2 || name[0] != letter) return std::nullopt;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 1, end, number);
    if (error != std::errc() || rest != end || number >= count) return std::nullopt;
    return number;
}

std::unexpected<Error> no_register(std::string_view name) {
    return fail(Cause::not_found, fmt::format("no register '{}'", name), {},
                "a simulated chip without USB has s0 to s31 and p0 to p7");
}

}  // namespace

Result<CoreState> SimulatedDebugger::core() {
    CoreState state;
    const ScalarCore& core = machine_->core();
    state.registers.resize(2);
    state.registers[scalar_file].assign(core.registers().begin(), core.registers().end());
    state.registers[predicate_file].assign(core.predicates().begin(), core.predicates().end());
    state.program_counter = core.program_counter();
    if (ended()) return state;
    const CoreStatus status = machine_->core_status();
    state.waits = status.waits;
    if (status.at == nullptr) return state;
    state.at = word_of(*status.at);
    state.instruction = name_of(*status.at);
    return state;
}

EngineState SimulatedDebugger::state_of(Actor actor, const EngineStatus& status,
                                        std::string waits) const {
    EngineState state{.unit = unit_of(actor),
                      .at = {},
                      .instruction = {},
                      .waits = {},
                      .queued = status.queued,
                      .nests = {}};
    const ProgramInstruction* at = status.current != nullptr ? status.current : status.next;
    if (at != nullptr) state.instruction = name_of(*at);
    if (status.current == nullptr) return state;
    state.at = word_of(*status.current);
    state.waits = std::move(waits);
    for (const auto& walk : status.walks)
        state.nests.push_back(sim::state_of(*status.current, walk));
    return state;
}

EngineState SimulatedDebugger::state_of(Actor actor, const DispatchStatus& status) const {
    return {.unit = unit_of(actor),
            .at = word_of(*status.next),
            .instruction = name_of(*status.next),
            .waits = status.waits,
            .queued = status.queued - 1,
            .nests = {}};
}

Result<std::vector<EngineState>> SimulatedDebugger::engines() {
    std::vector<EngineState> states;
    if (ended()) return states;
    for (unsigned e = 0; e < scalar_engine_count; ++e) {
        const EngineStatus status = machine_->scalar_engine(e);
        if (status.current != nullptr || status.queued > 0)
            states.push_back(state_of(scalar_actor(e), status,
                                      describe(status.blocked, machine_->scalar().counters)));
    }
    for (unsigned t = 0; t < tile_count; ++t) {
        const DispatchStatus waiting = machine_->dispatcher(t);
        if (waiting.queued > 0) states.push_back(state_of(dispatch_actor(t), waiting));
        for (unsigned e = 0; e < tile_engine_count; ++e) {
            const EngineStatus status = machine_->engine(t, e);
            if (status.current != nullptr || status.queued > 0)
                states.push_back(state_of(tile_actor(t, e), status,
                                          describe(status.blocked, machine_->tile(t).counters)));
        }
    }
    return states;
}

Result<std::vector<CounterState>> SimulatedDebugger::counters() {
    std::vector<CounterState> states;
    for (const auto& value : spec::scalar_counter_values)
        states.push_back({{}, value.name, machine_->scalar().counters[value.value]});
    for (unsigned t = 0; t < tile_count; ++t)
        for (const auto& value : spec::tile_counter_values)
            states.push_back({TileNumber{t}, value.name, machine_->tile(t).counters[value.value]});
    return states;
}

Result<std::vector<QueueState>> SimulatedDebugger::queues() {
    std::vector<QueueState> states;
    constexpr std::string_view links[] = {"from the north", "from the east", "from the south",
                                          "from the west"};
    if (!ended()) {
        const HostMemory& host = *parts_[part_].loaded.host;
        states.push_back({{}, "host to chip", host.not_taken(), {}, "bytes"});
        states.push_back({{}, "chip to host", host.not_sent(), {}, "bytes"});
    }
    states.push_back(
        {{}, "rings", machine_->scalar().arrived.size(), RingQueue::depth, "messages"});
    for (unsigned t = 0; t < tile_count; ++t) {
        const Tile& tile = machine_->tile(t);
        const DispatchStatus dispatch = machine_->dispatcher(t);
        const TileNumber number{t};
        states.push_back({number, "dispatch", dispatch.queued, {}, "instructions"});
        states.push_back({number, "notifications", dispatch.notifications, {}, "fences"});
        states.push_back({number, "ring A", tile.rings[0].size(), RingQueue::depth, "messages"});
        states.push_back({number, "ring B", tile.rings[1].size(), RingQueue::depth, "messages"});
        for (unsigned d = 0; d < std::size(links); ++d)
            states.push_back({number, std::string(links[d]), tile.arrived[d].waiting(),
                              MeshLink::depth, "words"});
    }
    return states;
}

std::span<const std::uint8_t> SimulatedDebugger::unit_bytes(const MemoryRange& range,
                                                            std::uint32_t unit) {
    ScalarState& scalar = machine_->scalar();
    const auto address = static_cast<std::int32_t>(unit);
    if (range.memory == ChipMemory::scalar) return scalar.unit(Fifo::relay_, address);
    if (range.memory == ChipMemory::parameter_fifo) return scalar.unit(Fifo::parameters_, address);
    if (range.memory == ChipMemory::activation_fifo)
        return scalar.unit(Fifo::activations_, address);
    if (range.memory == ChipMemory::narrow)
        return std::span(machine_->tile(range.tile->value).memory.narrow).subspan(unit, 1);
    if (range.memory == ChipMemory::wide)
        return machine_->tile(range.tile->value).memory.wide[unit];
    return std::span(machine_->tile(range.tile->value).memory.scaling)
        .subspan(unit * scaling_word_bytes, scaling_word_bytes);
}

Result<std::vector<std::byte>> SimulatedDebugger::read_memory(const MemoryRange& range) {
    const MemoryInfo& info = info_of(range.memory);
    if (info.of_tile != range.tile.has_value())
        return fail(
            Cause::bad_argument,
            fmt::format("{} memory {}", info.name, info.of_tile ? "needs a tile" : "is no tile's"));
    if (range.tile && range.tile->value >= tile_count)
        return fail(Cause::bad_argument, fmt::format("there is no tile {}", range.tile->value), {},
                    fmt::format("tiles are 0 to {}", tile_count - 1));
    if (range.last < range.first || range.last >= info.units)
        return fail(Cause::bad_argument,
                    fmt::format("{} memory has no {}s {:#x} to {:#x}", info.name, info.unit,
                                range.first, range.last),
                    {}, fmt::format("the last is {:#x}", info.units - 1));
    std::vector<std::byte> bytes;
    bytes.reserve((range.last - range.first + 1) * info.unit_bytes);
    for (std::uint32_t unit = range.first; unit <= range.last; ++unit)
        for (const std::uint8_t byte : unit_bytes(range, unit)) bytes.push_back(std::byte{byte});
    return bytes;
}

Result<std::uint64_t> SimulatedDebugger::read_register(std::string_view name) {
    const ScalarCore& core = machine_->core();
    if (const auto number = numbered(name, 's', scalar_registers)) return core.registers()[*number];
    if (const auto number = numbered(name, 'p', scalar_predicates))
        return core.predicates()[*number] ? 1 : 0;
    return no_register(name);
}

Status SimulatedDebugger::write_register(std::string_view name, std::uint64_t value) {
    ScalarCore& core = machine_->core();
    const auto scalar = numbered(name, 's', scalar_registers);
    const auto predicate = numbered(name, 'p', scalar_predicates);
    if (!scalar && !predicate) return no_register(name);
    if (value > (scalar ? 0xffffffffU : 1U))
        return fail(Cause::bad_argument, fmt::format("{} cannot hold {:#x}", name, value), {},
                    scalar ? "it has 32 bits" : "a predicate is 0 or 1");
    if (scalar)
        core.set_register(*scalar, static_cast<std::uint32_t>(value));
    else
        core.set_predicate(*predicate, value != 0);
    return {};
}

}  // namespace reef::edgetpu::sim
