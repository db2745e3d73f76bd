#include <fmt/format.h>

#include "debug/print.h"
#include "outputs/instruction_json.h"

namespace reef::tool::debug {

using namespace chip;

namespace {

Json json_of(const std::optional<TileNumber>& tile) {
    return tile ? Json(tile->value) : Json(nullptr);
}

Json json_of(const ChipUnit& unit) {
    return {{"tile", json_of(unit.tile)}, {"engine", unit.engine}};
}

Json json_of(const DebugTables& chip, const DebugEvent& event) {
    constexpr std::string_view kinds[] = {"comes_to", "starts", "finishes", "writes"};
    Json json = {{"kind", kinds[static_cast<std::size_t>(event.kind)]},
                 {"unit", json_of(event.unit)},
                 {"at", debug::json_of(event.at)},
                 {"instruction", event.instruction}};
    if (event.memory) json["memory"] = debug::json_of(chip, *event.memory);
    if (event.breakpoint) json["breakpoint"] = *event.breakpoint;
    return json;
}

Json json_of(const NestState& nest) {
    Json loops = Json::array();
    for (const auto& [index, count] : nest.loops)
        loops.push_back({{"index", index}, {"count", count}});
    Json json = {{"name", nest.name},
                 {"done", nest.done},
                 {"visits_done", nest.visits_done},
                 {"visits", nest.visits},
                 {"loops", std::move(loops)}};
    if (!nest.unit.empty() && !nest.done) {
        json["unit"] = nest.unit;
        json["address"] = nest.address;
    }
    return json;
}

Json json_of(const DebuggedTensor& layer) {
    return {{"name", layer.name}, {"shape", layer.shape}};
}

}  // namespace

Json json_of(const ProgramWord& word) {
    return {{"executable", word.executable}, {"stream", word.stream}, {"word", word.word}};
}

Json json_of(const DebugTables& chip, const MemoryRange& where) {
    const MemoryInfo& info = chip.info_of(where.memory);
    return {{"memory", info.name},           {"tile", json_of(where.tile)}, {"unit", info.unit},
            {"unit_bytes", info.unit_bytes}, {"first", where.first},        {"last", where.last}};
}

Json json_of(const DebugTables& chip, const RunStop& stop) {
    constexpr std::string_view reasons[] = {"stepped", "breakpoint", "ended", "interrupted",
                                            "running"};
    Json events = Json::array();
    for (const DebugEvent& event : stop.events) events.push_back(json_of(chip, event));
    return {{"reason", reasons[static_cast<std::size_t>(stop.reason)]},
            {"rounds", stop.rounds},
            {"events", std::move(events)}};
}

Json json_of(const DebugTables& chip, const Breakpoint& breakpoint) {
    Json json = {{"number", breakpoint.number}, {"hits", breakpoint.hits}};
    if (const auto* word = std::get_if<WordBreak>(&breakpoint.when)) {
        json["at"] = json_of(word->at);
        json["done"] = word->when_done;
        json["tile"] = json_of(word->tile);
    } else {
        json["write"] = json_of(chip, std::get<WriteBreak>(breakpoint.when).where);
    }
    return json;
}

Json json_of(const DebugTables& chip, const CoreState& core) {
    Json json = {{"at", core.at ? json_of(*core.at) : Json(nullptr)},
                 {"program_counter", core.program_counter},
                 {"instruction", core.instruction},
                 {"waits", core.waits}};
    for (std::size_t file = 0; file < core.registers.size(); ++file) {
        const RegisterFile& info = chip.registers[file];
        Json& values = json[std::string(info.name)] = Json::array();
        for (const std::uint64_t value : core.registers[file])
            values.push_back(info.bits == 1 ? Json(value != 0) : Json(value));
    }
    return json;
}

Json json_of(const std::vector<EngineState>& engines) {
    Json list = Json::array();
    for (const EngineState& state : engines) {
        Json nests = Json::array();
        for (const NestState& nest : state.nests) nests.push_back(json_of(nest));
        list.push_back({{"unit", json_of(state.unit)},
                        {"at", state.at ? json_of(*state.at) : Json(nullptr)},
                        {"instruction", state.instruction},
                        {"waits", state.waits},
                        {"queued", state.queued},
                        {"nests", std::move(nests)}});
    }
    return list;
}

Json json_of(const std::vector<CounterState>& counters) {
    Json list = Json::array();
    for (const CounterState& counter : counters)
        list.push_back(
            {{"tile", json_of(counter.tile)}, {"counter", counter.name}, {"value", counter.value}});
    return list;
}

Json json_of(const std::vector<QueueState>& queues) {
    Json list = Json::array();
    for (const QueueState& queue : queues)
        list.push_back({{"tile", json_of(queue.tile)},
                        {"queue", queue.name},
                        {"used", queue.used},
                        {"room", queue.room ? Json(*queue.room) : Json(nullptr)},
                        {"unit", queue.unit}});
    return list;
}

Json json_of(const std::vector<ProgramLayer>& layers) {
    Json list = Json::array();
    for (const ProgramLayer& layer : layers) {
        Json words = Json::array();
        for (const ProgramWord& word : layer.instructions) words.push_back(json_of(word));
        list.push_back({{"instructions", std::move(words)}});
    }
    return list;
}

Json info_json(const Target& target) {
    Json streams = Json::array();
    for (const StreamView& stream : target.debugger->streams())
        streams.push_back({{"executable", stream.first.executable},
                           {"type", stream.type},
                           {"stream", stream.first.stream},
                           {"words", stream.bytes.size() / target.debugger->tables().word_bytes}});
    Json inputs = Json::array();
    for (const DebuggedTensor& layer : target.inputs) inputs.push_back(json_of(layer));
    Json outputs = Json::array();
    for (const DebuggedTensor& layer : target.outputs) outputs.push_back(json_of(layer));
    return {{"file", target.file},
            {"device", target.device},
            {"streams", std::move(streams)},
            {"inputs", std::move(inputs)},
            {"outputs", std::move(outputs)}};
}

Json listing_json(const Disassembler& disassembler, const StreamView& stream, std::size_t from,
                  std::size_t count) {
    Json list = Json::array();
    hw::InstructionCursor cursor(disassembler.instruction_set(), stream.bytes);
    while (const auto one = cursor.next()) {
        if (one->word < from) continue;
        if (count-- == 0) break;
        list.push_back(instruction_json(*one));
    }
    return list;
}

Json hexadecimal(Bytes bytes) {
    std::string text;
    for (const std::byte byte : bytes)
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

}  // namespace reef::tool::debug
