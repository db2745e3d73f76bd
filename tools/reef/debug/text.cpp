#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "debug/print.h"

namespace reef::tool::debug {

using namespace chip;

std::string word_name(const ProgramWord& word) {
    if (word.stream == 0) return fmt::format("{}:{:#06x}", word.executable, word.word);
    return fmt::format("{}:{}:{:#06x}", word.executable, word.stream, word.word);
}

std::string unit_name(const DebugTables& chip, const ChipUnit& unit) {
    return unit.tile ? fmt::format("{} {} {}", chip.tile, unit.tile->value, unit.engine)
                     : std::string(unit.engine);
}

namespace {

std::string range_text(const DebugTables& chip, const MemoryRange& range) {
    const MemoryInfo& info = chip.info_of(range.memory);
    std::string text(info.name);
    if (info.of_tile) text += range.tile ? fmt::format(" {}", range.tile->value) : " any";
    text += fmt::format(" {:#x}", range.first);
    return range.last == range.first ? text : text + fmt::format("..{:#x}", range.last);
}

std::string event_text(const DebugTables& chip, const DebugEvent& event) {
    constexpr std::string_view verbs[] = {"comes to", "takes up", "has finished", "writes"};
    std::string text = fmt::format("{} {}", unit_name(chip, event.unit),
                                   verbs[static_cast<std::size_t>(event.kind)]);
    if (event.memory) text += fmt::format(" {} in", range_text(chip, *event.memory));
    text += fmt::format(" {}", word_name(event.at));
    return event.instruction.empty() ? text : text + fmt::format(" {}", event.instruction);
}

/// "0-3, 8"
std::string tiles_text(std::uint32_t tiles) {
    std::string text;
    for (unsigned t = 0; t < 32; ++t) {
        if ((tiles >> t & 1U) == 0) continue;
        unsigned last = t;
        while (last + 1 < 32 && (tiles >> (last + 1) & 1U) != 0) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", t);
        if (last > t) text += fmt::format("-{}", last);
        t = last;
    }
    return text;
}

std::string nest_text(const NestState& nest) {
    std::string text = fmt::format("    {:<5}", nest.name);
    if (!nest.unit.empty() && !nest.done)
        text += fmt::format("{} {:#x}, ", nest.unit, nest.address);
    text += nest.done ? fmt::format("done, {} visits", nest.visits)
                      : fmt::format("{} of {} visits", nest.visits_done, nest.visits);
    if (!nest.loops.empty()) text += "  ";
    for (const auto& [index, count] : nest.loops) text += fmt::format("[{}/{}]", index, count);
    return text + "\n";
}

/// What an engine does, without its tile.
std::string work_text(const EngineState& state) {
    std::string text = fmt::format(" {}", state.unit.engine);
    text += state.at ? fmt::format("  {} {}", word_name(*state.at), state.instruction)
                     : fmt::format("  next: {}", state.instruction);
    const std::size_t behind = state.queued - (state.at || state.queued == 0 ? 0 : 1);
    if (behind > 0) text += fmt::format(", {} behind it", behind);
    text += "\n";
    if (!state.waits.empty()) text += fmt::format("    {}\n", state.waits);
    for (const NestState& nest : state.nests) text += nest_text(nest);
    return text;
}

}  // namespace

std::string text_of(const DebugTables& chip, const RunStop& stop) {
    std::string text;
    for (const DebugEvent& event : stop.events) {
        if (event.breakpoint) text += fmt::format("breakpoint {}: ", *event.breakpoint);
        text += fmt::format("{}\n", event_text(chip, event));
    }
    switch (stop.reason) {
        case RunStop::Reason::ended:
            return text + fmt::format("the program has ended, after {} rounds\n", stop.rounds);
        case RunStop::Reason::interrupted:
            return text + fmt::format("interrupted in round {}\n", stop.rounds);
        case RunStop::Reason::running:
            return text + "the chip runs on\n";
        case RunStop::Reason::stepped:
        case RunStop::Reason::breakpoint:
            break;
    }
    return text + fmt::format("round {}\n", stop.rounds);
}

std::string text_of(const DebugTables& chip, const Breakpoint& breakpoint) {
    std::string text = fmt::format("{:>3}  ", breakpoint.number);
    if (const auto* word = std::get_if<WordBreak>(&breakpoint.when)) {
        text += word_name(word->at);
        if (word->when_done) text += " done";
        if (word->tile) text += fmt::format(" {} {}", chip.tile, word->tile->value);
    } else {
        text += "write " + range_text(chip, std::get<WriteBreak>(breakpoint.when).where);
    }
    return text + fmt::format("  hit {} times\n", breakpoint.hits);
}

std::string where_text(const CoreState& core) {
    if (!core.at && core.instruction.empty())
        return fmt::format("core: program counter {:#06x}\n", core.program_counter);
    std::string text = fmt::format("core: {} {}", word_name(*core.at), core.instruction);
    if (!core.waits.empty()) text += fmt::format(", {}", core.waits);
    return text + "\n";
}

std::string registers_text(const RegisterFile& file, std::span<const std::uint64_t> values) {
    constexpr std::size_t columns = 4;
    const bool flags = file.bits == 1;
    const std::size_t in_a_line = flags ? values.size() : columns;
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string name = fmt::format("{}{}", file.prefix, i);
        text += flags ? fmt::format("{} {}", name, values[i])
                      : fmt::format("{:>4} {:#0{}x}", name, values[i], 2 + file.bits / 4);
        text += i % in_a_line == in_a_line - 1 || i + 1 == values.size() ? "\n" : "  ";
    }
    return text;
}

std::string text_of(const DebugTables& chip, const std::vector<EngineState>& engines) {
    if (engines.empty()) return "every engine is idle\n";
    std::vector<std::pair<std::string, std::uint32_t>> works;
    for (const EngineState& state : engines) {
        const std::string work = work_text(state);
        auto found = std::ranges::find(works, work, [](const auto& each) { return each.first; });
        if (found == works.end()) found = works.insert(works.end(), {work, 0});
        if (state.unit.tile) found->second |= 1U << state.unit.tile->value;
    }
    std::string text;
    for (const auto& [work, tiles] : works)
        text += tiles == 0 ? fmt::format("core:{}", work)
                           : fmt::format("{} {}:{}", chip.tile, tiles_text(tiles), work);
    return text;
}

std::string text_of(const DebugTables& chip, const std::vector<CounterState>& counters, bool all) {
    std::string text;
    const std::optional<TileNumber>* unit = nullptr;
    for (const CounterState& counter : counters) {
        if (!all && counter.value == 0) continue;
        if (unit == nullptr || *unit != counter.tile) {
            text += text.empty() ? "" : "\n";
            text += counter.tile ? fmt::format("{} {}:", chip.tile, counter.tile->value) : "core:";
        }
        unit = &counter.tile;
        text += fmt::format(" {} {}", counter.name, counter.value);
    }
    return text.empty() ? "every counter is 0\n" : text + "\n";
}

std::string text_of(const DebugTables& chip, const std::vector<QueueState>& queues, bool all) {
    std::string text;
    for (const QueueState& queue : queues) {
        if (!all && queue.used == 0) continue;
        text += queue.tile ? fmt::format("{} {} ", chip.tile, queue.tile->value) : "core ";
        text += fmt::format("{}: {}", queue.name, queue.used);
        if (queue.room) text += fmt::format(" of {}", *queue.room);
        text += fmt::format(" {}\n", queue.unit);
    }
    return text.empty() ? "every queue is empty\n" : text;
}

std::string memory_text(const MemoryInfo& info, std::uint32_t first, Bytes bytes) {
    constexpr std::size_t line = 16;
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += line) {
        const std::size_t unit = first + at / info.unit_bytes;
        text += fmt::format("{:#07x}", unit);
        if (info.unit_bytes > line) text += fmt::format("+{:02x}", at % info.unit_bytes);
        text += ':';
        for (std::size_t i = at; i < std::min(at + line, bytes.size()); ++i)
            text += fmt::format("{}{:02x}", i % 4 == 0 && i != at ? "  " : " ",
                                std::to_integer<unsigned>(bytes[i]));
        text += '\n';
    }
    return text;
}

std::string text_of(const std::vector<ProgramLayer>& layers) {
    std::string text;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto& words = layers[i].instructions;
        text += fmt::format("{:>3}  {}", i, word_name(words.front()));
        if (words.size() > 1)
            text += fmt::format(" to {}, {} tensor instructions", word_name(words.back()),
                                words.size());
        text += '\n';
    }
    return text.empty() ? "no tensor instructions\n" : text;
}

std::string info_text(const Target& target) {
    const DebugTables& chip = target.debugger->tables();
    std::string text =
        fmt::format("{}{}on {}\n", target.file, target.file.empty() ? "" : " ", target.device);
    for (const StreamView& stream : target.debugger->streams())
        text +=
            fmt::format("executable {} {}, stream {}: {} words\n", stream.first.executable,
                        stream.type, stream.first.stream, stream.bytes.size() / chip.word_bytes);
    for (const DebuggedTensor& layer : target.inputs)
        text += fmt::format("input {}  {}\n", printable(layer.name), layer.shape);
    for (const DebuggedTensor& layer : target.outputs)
        text += fmt::format("output {}  {}\n", printable(layer.name), layer.shape);
    if (target.debugger->shows_memories())
        for (const MemoryInfo& memory : chip.memories)
            text += fmt::format("memory {}{}: {:#x} {}s{}\n", memory.name,
                                memory.of_tile ? fmt::format(" of each {}", chip.tile) : "",
                                memory.units, memory.unit,
                                memory.unit_bytes == 1
                                    ? std::string()
                                    : fmt::format(" of {} bytes", memory.unit_bytes));
    return text;
}

std::string listing(const Disassembler& disassembler, const StreamView& stream, std::size_t from,
                    std::size_t count, std::optional<std::size_t> marked) {
    std::string text;
    hw::InstructionCursor cursor(disassembler.instruction_set(), stream.bytes);
    while (const auto one = cursor.next()) {
        if (one->word < from) continue;
        if (count-- == 0) break;
        text += one->word == marked ? "> " : "  ";
        disassembler.append_text(*one, {.symbolic = true}, text);
        text += '\n';
    }
    return text;
}

}  // namespace reef::tool::debug
