#include "debug/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "debug/print.h"

namespace reef::tool::debug {

using namespace reef::chip;

/// With --json, {"schema_version", "verb", "command", KEY: ...}.
template <typename MakeText, typename MakeJson>
void Session::answer(std::string_view command, std::string_view key, MakeText text, MakeJson json) {
    if (!json_) {
        console_.write(text());
        return;
    }
    Json document = json_document("debug");
    document["command"] = command;
    document[std::string(key)] = json();
    console_.print("{}\n", document.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Session::done(std::string_view command, const std::string& text) {
    answer(
        command, "done", [&] { return text; }, [] { return Json(true); });
}

Status Session::execute(std::string_view line) {
    const auto command = REEF_TRY(parse(line, chip()));
    if (!command) return {};
    return std::visit([this](const auto& one) { return carry_out(one); }, *command);
}

ProgramWord Session::resolve(const WordText& text) const {
    const auto streams = target_.debugger->streams();
    const std::size_t computing = streams.empty() ? 0 : streams.back().first.executable;
    return {text.executable.value_or(computing), text.stream, text.word};
}

Status Session::carry_out(const Help& help) {
    const std::string text = REEF_TRY(help_text(help.command, chip()));
    answer(
        "help", "text", [&] { return text; }, [&] { return Json(text); });
    return {};
}

Status Session::carry_out(const Quit&) {
    left_ = true;
    return {};
}

Status Session::carry_out(const RunTo& run) {
    if (program_failed())
        return fail(Cause::bad_argument, "the program has failed and cannot go on", {},
                    "restart goes back to before its first instruction");
    const RunStop stop = REEF_TRY(target_.debugger->run(run.until, run.count));
    place_.reset();
    if (!stop.events.empty()) place_ = stop.events.front().at;
    answer(
        run.until == RunUntil::breakpoint ? "continue" : "step", "stop",
        [&] { return text_of(chip(), stop); }, [&] { return json_of(chip(), stop); });
    return {};
}

Status Session::carry_out(const Halt&) {
    REEF_CHECK(target_.debugger->halt());
    done("halt", "halted\n");
    return {};
}

Status Session::carry_out(const Restart&) {
    REEF_CHECK(target_.debugger->restart());
    place_.reset();
    done("restart", "before the first instruction\n");
    return {};
}

Status Session::add(const BreakCondition& when) {
    const unsigned number = REEF_TRY(target_.debugger->add_breakpoint(when));
    const auto all = target_.debugger->breakpoints();
    const auto& added = *std::ranges::find(all, number, &Breakpoint::number);
    answer(
        "break", "breakpoint", [&] { return "breakpoint" + text_of(chip(), added); },
        [&] { return json_of(chip(), added); });
    return {};
}

Status Session::carry_out(const BreakAtWord& at) {
    return add(WordBreak{resolve(at.word), at.when_done, at.tile});
}

Status Session::carry_out(const BreakAtWrite& at) {
    return add(WriteBreak{at.where});
}

Status Session::carry_out(const Delete& which) {
    REEF_CHECK(target_.debugger->delete_breakpoint(which.number));
    done("delete", fmt::format("breakpoint {} is deleted\n", which.number));
    return {};
}

Status Session::carry_out(const ShowRegisters& show) {
    const CoreState core = REEF_TRY(target_.debugger->core());
    const RegisterFile& file = chip().registers[show.file];
    answer(
        file.name, "core", [&] { return registers_text(file, core.registers[show.file]); },
        [&] { return json_of(chip(), core); });
    return {};
}

Status Session::show_outputs() {
    static constexpr MemoryInfo bytes_from_0{.name = {}, .unit = "byte"};
    const auto outputs = REEF_TRY(target_.debugger->outputs());
    const auto text = [&] {
        std::string all;
        for (std::size_t i = 0; i < outputs.size(); ++i)
            all += fmt::format("{}  {}\n{}", printable(target_.outputs[i].name),
                               target_.outputs[i].shape, memory_text(bytes_from_0, 0, outputs[i]));
        return all;
    };
    const auto json = [&] {
        Json all = Json::array();
        for (std::size_t i = 0; i < outputs.size(); ++i)
            all.push_back({{"name", target_.outputs[i].name},
                           {"shape", target_.outputs[i].shape},
                           {"bytes", hexadecimal(outputs[i])}});
        return all;
    };
    answer("outputs", "outputs", text, json);
    return {};
}

Status Session::carry_out(Show show) {
    const Debugger& debugger = *target_.debugger;
    switch (show) {
        case Show::where: {
            const CoreState core = REEF_TRY(target_.debugger->core());
            answer(
                "where", "core", [&] { return where_text(core); },
                [&] { return json_of(chip(), core); });
            return {};
        }
        case Show::outputs:
            return show_outputs();
        case Show::info:
            answer(
                "info", "info", [&] { return info_text(target_); },
                [&] { return info_json(target_); });
            return {};
        case Show::layers:
            answer(
                "layers", "layers", [&] { return text_of(debugger.layers()); },
                [&] { return json_of(debugger.layers()); });
            return {};
        case Show::breakpoints:
            break;
    }
    const auto all = debugger.breakpoints();
    const auto text = [&] {
        std::string lines;
        for (const Breakpoint& one : all) lines += text_of(chip(), one);
        return lines.empty() ? "no breakpoints\n" : lines;
    };
    const auto json = [&] {
        Json list = Json::array();
        for (const Breakpoint& one : all) list.push_back(json_of(chip(), one));
        return list;
    };
    answer("breakpoints", "breakpoints", text, json);
    return {};
}

namespace {

template <typename State, typename TileOf>
std::vector<State> only(std::vector<State> states, const UnitFilter& filter, TileOf tile_of) {
    std::erase_if(states, [&](const State& state) { return !filter.shows(tile_of(state)); });
    return states;
}

}  // namespace

Status Session::carry_out(const ShowOf& show) {
    Debugger& debugger = *target_.debugger;
    const bool all = show.filter.core_only || show.filter.tile;
    const auto tile = [](const auto& state) { return state.tile; };
    // A tile without anything to show is not the same as no such tile.
    if (show.filter.tile && only(REEF_TRY(debugger.counters()), show.filter, tile).empty())
        return fail(Cause::bad_argument,
                    fmt::format("{} {} shows nothing here", chip().tile, show.filter.tile->value),
                    {}, std::string(chip().tile_hint));
    if (show.what == ShowUnits::engines) {
        const auto states = only(REEF_TRY(debugger.engines()), show.filter,
                                 [](const EngineState& state) { return state.unit.tile; });
        answer(
            "engines", "engines", [&] { return text_of(chip(), states); },
            [&] { return json_of(states); });
    } else if (show.what == ShowUnits::counters) {
        const auto states = only(REEF_TRY(debugger.counters()), show.filter, tile);
        answer(
            "counters", "counters", [&] { return text_of(chip(), states, all); },
            [&] { return json_of(states); });
    } else {
        const auto states = only(REEF_TRY(debugger.queues()), show.filter, tile);
        answer(
            "queues", "queues", [&] { return text_of(chip(), states, all); },
            [&] { return json_of(states); });
    }
    return {};
}

Status Session::carry_out(const Register& reg) {
    if (reg.value) REEF_CHECK(target_.debugger->write_register(reg.name, *reg.value));
    const std::uint64_t value = REEF_TRY(target_.debugger->read_register(reg.name));
    answer(
        "reg", "register", [&] { return fmt::format("{} = {:#x}\n", reg.name, value); },
        [&] {
            return Json{{"name", reg.name}, {"value", value}};
        });
    return {};
}

Status Session::carry_out(const ShowMemory& show) {
    const auto bytes = REEF_TRY(target_.debugger->read_memory(show.where));
    answer(
        "memory", "memory",
        [&] { return memory_text(chip().info_of(show.where.memory), show.where.first, bytes); },
        [&] {
            Json json = json_of(chip(), show.where);
            json["bytes"] = hexadecimal(bytes);
            return json;
        });
    return {};
}

Status Session::carry_out(const ShowTensor& show) {
    const std::size_t size = REEF_TRY(bytes_of(show));
    const std::size_t unit = chip().info_of(show.memory).unit_bytes;
    const auto units = static_cast<std::uint32_t>((size + unit - 1) / unit);
    const MemoryRange where{show.memory, show.tile, show.first, show.first + units - 1};
    if (where.last < where.first)
        return fail(Cause::bad_argument, "the region ends behind the memory");
    const auto bytes = REEF_TRY(target_.debugger->read_memory(where));
    answer(
        "tensor", "tensor", [&] { return tensor_text(show, bytes); },
        [&] {
            Json json = json_of(chip(), where);
            json["shape"] = show.shape;
            json["type"] = name_of(show.type);
            json["strides"] = strides_of(show);
            json["values"] = tensor_json(show, bytes);
            return json;
        });
    return {};
}

namespace {

/// The word of the instruction so many before `word`.
std::size_t word_before(const Disassembler& disassembler, Bytes stream, std::size_t word,
                        std::size_t instructions) {
    std::vector<std::size_t> words;
    hw::InstructionCursor cursor(disassembler.instruction_set(), stream);
    for (auto one = cursor.next(); one && one->word < word; one = cursor.next())
        words.push_back(one->word);
    return words.size() > instructions ? words[words.size() - instructions] : 0;
}

}  // namespace

Status Session::carry_out(const List& list) {
    constexpr std::size_t context = 3;
    const Disassembler& disassembler = *target_.disassembler;
    std::optional<ProgramWord> place = place_;
    if (!place) {
        const CoreState core = REEF_TRY(target_.debugger->core());
        place = core.at ? *core.at : resolve({{}, 0, core.program_counter});
    }
    const ProgramWord wanted = list.from ? resolve(*list.from) : *place;
    for (const StreamView& stream : target_.debugger->streams()) {
        const ProgramWord& first = stream.first;
        if (first.executable != wanted.executable || first.stream != wanted.stream) continue;
        if (wanted.word >= stream.bytes.size() / chip().word_bytes) break;
        const std::size_t from =
            list.from ? wanted.word : word_before(disassembler, stream.bytes, wanted.word, context);
        std::optional<std::size_t> marked;
        if (place->executable == first.executable && place->stream == first.stream)
            marked = place->word;
        answer(
            "list", "instructions",
            [&] { return listing(disassembler, stream, from, list.count, marked); },
            [&] { return listing_json(disassembler, stream, from, list.count); });
        return {};
    }
    return fail(Cause::bad_argument, fmt::format("there is no word {}", word_name(wanted)), {},
                "info lists the executables and the lengths of their streams");
}

}  // namespace reef::tool::debug
