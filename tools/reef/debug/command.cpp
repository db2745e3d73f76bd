#include "debug/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace reef::tool::debug {
namespace {

using chip::DebugTables;
using chip::RunUntil;
using chip::TileNumber;

struct Form {
    std::string_view name;
    std::string arguments;  ///< one set of them a line
    std::string meaning;
};

std::string_view element_note(const DebugTables& chip) {
    return chip.flips_signed
               ? "; signed elements as the host has them, the chip's with the top bit "
                 "flipped"
               : "";
}

std::vector<Form> forms_of(const DebugTables& chip) {
    const std::string tile(chip.tile);
    const std::string unit = fmt::format("[core | {} T]", tile);
    std::vector<Form> forms = {
        {"step", "[N]\nlayer [N]\nround [N]",
         "to the next instruction; to the next layer's first tensor instruction; by rounds, in "
         "which every engine makes one visit at most"},
        {"continue", "", "to the next breakpoint or the end"},
        {"halt", "", "stop a stick's scalar core"},
        {"restart", "", "back to before the first instruction; breakpoints stay"},
        {"break", fmt::format("WORD [done] [{} T]\nwrite MEMORY [T] FIRST[..LAST]", tile),
         fmt::format(
             "stop before an instruction, or after it on all its {}s; stop at a write there",
             tile)},
        {"delete", "N", "delete a breakpoint"},
        {"breakpoints", "", "list them"},
        {"where", "", "the scalar core's next instruction and what holds it"}};
    for (const chip::RegisterFile& file : chip.registers)
        forms.push_back({file.name, "", std::string(file.command_meaning)});
    const std::vector<Form> rest = {
        {"reg", "NAME [= VALUE]", fmt::format("show or set a register: {}", chip.register_names)},
        {"engines", unit, "current instructions, their loop nests, and what they wait for"},
        {"counters", unit, "synchronisation counters"},
        {"queues", unit, "what waits in rings, mesh links and instruction queues"},
        {"memory", "MEMORY [T] FIRST [COUNT]", fmt::format("bytes of {}", chip.memory_names)},
        {"tensor", "MEMORY [T] FIRST SHAPE [TYPE] [strides S,S,...]",
         fmt::format("a region as a tensor, such as 4x8x16 int8; strides in bytes{}",
                     element_note(chip))},
        {"list", "[WORD [N]]", "instructions around the place, or from a word on"},
        {"info", "", "executables, streams, inputs, outputs and the memories' units"},
        {"layers", "", "the program's layers and their tensor instructions"},
        {"outputs", "", "what the program gave, once it has ended"},
        {"help", "[COMMAND]", "this"},
        {"quit", "", "leave"}};
    forms.insert(forms.end(), rest.begin(), rest.end());
    return forms;
}

template <typename T>
std::optional<T> number(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    T value{};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

/// What can be typed, each way by itself.
std::vector<std::string> lines_of(const Form& form) {
    std::vector<std::string> lines;
    for (const auto arguments : split(form.arguments, '\n'))
        lines.push_back(fmt::format("{}{}{}", form.name, arguments.empty() ? "" : " ", arguments));
    return lines;
}

std::unexpected<Error> wrong(const Form& form) {
    return fail(Cause::bad_argument,
                fmt::format("the form is: {}", fmt::join(lines_of(form), ", or ")));
}

std::vector<std::string_view> tokens_of(std::string_view line) {
    line = line.substr(0, line.find('#'));
    constexpr std::string_view space = " \t\r\n\v\f";
    std::vector<std::string_view> tokens;
    while (true) {
        const std::size_t begin = line.find_first_not_of(space);
        if (begin == std::string_view::npos) return tokens;
        line.remove_prefix(begin);
        // "=" needs no blanks around it.
        const std::size_t length = line[0] == '=' ? 1 : line.find_first_of(" \t\r\n\v\f=");
        tokens.push_back(line.substr(0, length));
        line.remove_prefix(tokens.back().size());
    }
}

/// Null when there is none, or several begin so.
const Form* find_form(std::span<const Form> forms, std::string_view name) {
    constexpr std::pair<std::string_view, std::string_view> short_names[] = {
        {"s", "step"}, {"c", "continue"}, {"b", "break"}, {"q", "quit"}};
    for (const auto& [shorter, full] : short_names)
        if (name == shorter) name = full;
    const Form* found = nullptr;
    for (const Form& form : forms) {
        if (form.name == name) return &form;
        if (!form.name.starts_with(name)) continue;
        if (found != nullptr) return nullptr;
        found = &form;
    }
    return found;
}

/// The words of one command behind its name, taken from the front.
class Arguments {
  public:
    explicit Arguments(std::span<const std::string_view> tokens) : left_(tokens) {}

    [[nodiscard]] bool empty() const { return left_.empty(); }
    [[nodiscard]] std::string_view front() const {
        return empty() ? std::string_view() : left_.front();
    }
    std::string_view take() {
        const auto token = front();
        if (!empty()) left_ = left_.subspan(1);
        return token;
    }
    bool take(std::string_view word) {
        if (front() != word) return false;
        take();
        return true;
    }
    template <typename T>
    std::optional<T> take_number() {
        const auto value = number<T>(front());
        if (value) take();
        return value;
    }

  private:
    std::span<const std::string_view> left_;
};

using Parsed = Result<std::optional<Command>>;

std::optional<WordText> word_text(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() > 3) return std::nullopt;
    std::array<std::size_t, 3> values{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto value = number<std::size_t>(parts[i]);
        if (!value) return std::nullopt;
        values[i] = *value;
    }
    if (parts.size() == 1) return WordText{{}, 0, values[0]};
    if (parts.size() == 2) return WordText{values[0], 0, values[1]};
    return WordText{values[0], values[1], values[2]};
}

/// What a command is parsed with: its form, and the chip that it is for.
struct Grammar {
    const Form& form;
    const DebugTables& chip;
};

/// MEMORY [T | tile T | any]: false when that is no memory, or a tile that it needs is missing.
bool take_memory(Arguments& arguments, const DebugTables& chip, bool any_tile,
                 chip::MemoryNumber& memory, std::optional<TileNumber>& tile) {
    const auto found = std::ranges::find(chip.memories, arguments.take(), &chip::MemoryInfo::name);
    if (found == chip.memories.end()) return false;
    memory = static_cast<chip::MemoryNumber>(found - chip.memories.begin());
    if (!found->of_tile || (any_tile && arguments.take("any"))) return true;
    arguments.take(chip.tile);
    const auto value = arguments.take_number<unsigned>();
    if (value) tile = TileNumber{*value};
    return value.has_value();
}

Parsed parse_step(const Grammar& grammar, Arguments arguments) {
    RunTo run;
    if (arguments.take("layer")) {
        run.until = RunUntil::layer;
    } else if (arguments.take("round")) {
        run.until = RunUntil::round;
    } else {
        arguments.take("instruction");
    }
    run.count = arguments.take_number<std::uint64_t>().value_or(1);
    if (!arguments.empty() || run.count == 0) return wrong(grammar.form);
    return run;
}

Parsed parse_break_at_write(const Grammar& grammar, Arguments arguments) {
    BreakAtWrite out;
    if (!take_memory(arguments, grammar.chip, true, out.where.memory, out.where.tile))
        return wrong(grammar.form);
    const std::string_view range = arguments.take();
    const std::size_t dots = range.find("..");
    const auto first = number<std::uint32_t>(range.substr(0, dots));
    const auto last =
        dots == std::string_view::npos ? first : number<std::uint32_t>(range.substr(dots + 2));
    if (!first || !last || *last < *first || !arguments.empty()) return wrong(grammar.form);
    out.where.first = *first;
    out.where.last = *last;
    return out;
}

Parsed parse_break(const Grammar& grammar, Arguments arguments) {
    if (arguments.take("write")) return parse_break_at_write(grammar, arguments);
    const auto word = word_text(arguments.take());
    if (!word) return wrong(grammar.form);
    BreakAtWord out{.word = *word, .when_done = false, .tile = {}};
    out.when_done = arguments.take("done");
    if (arguments.take(grammar.chip.tile)) {
        const auto tile = arguments.take_number<unsigned>();
        if (!tile) return wrong(grammar.form);
        out.tile = TileNumber{*tile};
    }
    if (!arguments.empty()) return wrong(grammar.form);
    return out;
}

Parsed parse_units(ShowUnits what, const Grammar& grammar, Arguments arguments) {
    ShowOf out{.what = what, .filter = {}};
    if (arguments.take("core")) {
        out.filter.core_only = true;
    } else if (arguments.take(grammar.chip.tile)) {
        const auto tile = arguments.take_number<unsigned>();
        if (!tile) return wrong(grammar.form);
        out.filter.tile = TileNumber{*tile};
    }
    if (!arguments.empty()) return wrong(grammar.form);
    return out;
}

Parsed parse_register(const Grammar& grammar, Arguments arguments) {
    Register out{.name = std::string(arguments.take()), .value = {}};
    if (out.name.empty() || out.name == "=") return wrong(grammar.form);
    if (arguments.take("=")) {
        out.value = arguments.take_number<std::uint64_t>();
        if (!out.value) return wrong(grammar.form);
    }
    if (!arguments.empty()) return wrong(grammar.form);
    return out;
}

Parsed parse_memory(const Grammar& grammar, Arguments arguments) {
    ShowMemory out;
    if (!take_memory(arguments, grammar.chip, false, out.where.memory, out.where.tile))
        return wrong(grammar.form);
    const auto first = arguments.take_number<std::uint32_t>();
    const auto& info = grammar.chip.info_of(out.where.memory);
    // Without a count about four lines of bytes.
    const auto count = arguments.empty() ? std::max<std::uint32_t>(
                                               1, 64 / static_cast<std::uint32_t>(info.unit_bytes))
                                         : arguments.take_number<std::uint32_t>().value_or(0);
    if (!first || count == 0 || !arguments.empty()) return wrong(grammar.form);
    if (*first >= info.units || count > info.units - *first)
        return fail(Cause::bad_argument,
                    fmt::format("{} memory has {:#x} {}s", info.name, info.units, info.unit));
    out.where.first = *first;
    out.where.last = *first + count - 1;
    return out;
}

/// Of the chip, or as the host reads it.
bool can_be_shown(ElementType type) {
    constexpr ElementType types[] = {ElementType::uint8, ElementType::int8,  ElementType::uint16,
                                     ElementType::int16, ElementType::int32, ElementType::float32};
    return std::ranges::find(types, type) != std::end(types);
}

Parsed parse_tensor(const Grammar& grammar, Arguments arguments) {
    ShowTensor out;
    out.flips_signed = grammar.chip.flips_signed;
    if (!take_memory(arguments, grammar.chip, false, out.memory, out.tile))
        return wrong(grammar.form);
    const auto first = arguments.take_number<std::uint32_t>();
    if (!first) return wrong(grammar.form);
    out.first = *first;
    for (const auto part : split(arguments.take(), 'x')) {
        const auto size = number<std::uint32_t>(part);
        if (!size || *size == 0) return wrong(grammar.form);
        out.shape.push_back(*size);
    }
    if (!arguments.empty() && arguments.front() != "strides") {
        const auto type = element_type_from(arguments.take());
        if (!type || !can_be_shown(*type))
            return fail(Cause::bad_argument,
                        "the element types are uint8, int8, uint16, int16, "
                        "int32 and float32");
        out.type = *type;
    }
    if (arguments.take("strides"))
        for (const auto part : split(arguments.take(), ',')) {
            const auto stride = number<std::int64_t>(part);
            if (!stride) return wrong(grammar.form);
            out.strides.push_back(*stride);
        }
    if (!arguments.empty()) return wrong(grammar.form);
    REEF_CHECK(bytes_of(out));
    return out;
}

Parsed parse_list(const Grammar& grammar, Arguments arguments) {
    List out;
    if (arguments.empty()) return out;
    out.from = word_text(arguments.take());
    if (!out.from) return wrong(grammar.form);
    if (!arguments.empty()) out.count = arguments.take_number<std::size_t>().value_or(0);
    if (!arguments.empty() || out.count == 0) return wrong(grammar.form);
    return out;
}

Parsed parse_help(Arguments arguments) {
    return Help{std::string(arguments.take())};
}

std::optional<Command> without_arguments(std::string_view name, const DebugTables& chip) {
    constexpr std::pair<std::string_view, Show> shows[] = {{"breakpoints", Show::breakpoints},
                                                           {"where", Show::where},
                                                           {"info", Show::info},
                                                           {"layers", Show::layers},
                                                           {"outputs", Show::outputs}};
    for (const auto& [known, show] : shows)
        if (name == known) return show;
    for (std::size_t file = 0; file < chip.registers.size(); ++file)
        if (name == chip.registers[file].name) return ShowRegisters{file};
    if (name == "continue") return RunTo{RunUntil::breakpoint, 1};
    if (name == "halt") return Halt{};
    if (name == "restart") return Restart{};
    if (name == "quit") return Quit{};
    return std::nullopt;
}

Parsed parse_with(const Grammar& grammar, Arguments arguments) {
    if (grammar.form.name == "step") return parse_step(grammar, arguments);
    if (grammar.form.name == "break") return parse_break(grammar, arguments);
    if (grammar.form.name == "reg") return parse_register(grammar, arguments);
    if (grammar.form.name == "engines") return parse_units(ShowUnits::engines, grammar, arguments);
    if (grammar.form.name == "counters")
        return parse_units(ShowUnits::counters, grammar, arguments);
    if (grammar.form.name == "queues") return parse_units(ShowUnits::queues, grammar, arguments);
    if (grammar.form.name == "memory") return parse_memory(grammar, arguments);
    if (grammar.form.name == "tensor") return parse_tensor(grammar, arguments);
    if (grammar.form.name == "list") return parse_list(grammar, arguments);
    if (grammar.form.name == "help") return parse_help(arguments);
    const auto number = arguments.take_number<unsigned>();  // delete
    if (!number || !arguments.empty()) return wrong(grammar.form);
    return Delete{*number};
}

}  // namespace

Parsed parse(std::string_view line, const DebugTables& chip) {
    const auto tokens = tokens_of(line);
    if (tokens.empty()) return std::nullopt;
    const auto forms = forms_of(chip);
    const Form* form = find_form(forms, tokens[0]);
    if (form == nullptr)
        return fail(Cause::bad_argument, fmt::format("'{}' is not one command", tokens[0]), {},
                    "help lists them");
    const Arguments arguments(std::span<const std::string_view>(tokens).subspan(1));
    if (auto plain = without_arguments(form->name, chip)) {
        if (!arguments.empty()) return wrong(*form);
        return plain;
    }
    return parse_with({*form, chip}, arguments);
}

Result<std::string> help_text(std::string_view command, const DebugTables& chip) {
    const auto forms = forms_of(chip);
    const Form* only = command.empty() ? nullptr : find_form(forms, command);
    if (!command.empty() && only == nullptr)
        return fail(Cause::bad_argument, fmt::format("'{}' is not one command", command), {},
                    "help lists them");
    std::string text;
    for (const Form& form : forms) {
        if (only != nullptr && only != &form) continue;
        text += fmt::format("{}\n    {}\n", fmt::join(lines_of(form), "\n"), form.meaning);
    }
    if (only == nullptr)
        text +=
            "WORD is an instruction's word as reef disasm shows it; E:WORD and E:STREAM:WORD are "
            "those of another executable.\n"
            "Commands may be shortened.\n";
    return text;
}

bool runs_on(std::string_view line, const chip::DebugTables& chip) {
    const auto command = parse(line, chip);
    return command && *command && std::holds_alternative<RunTo>(**command);
}

std::vector<std::int64_t> strides_of(const ShowTensor& tensor) {
    if (!tensor.strides.empty()) return tensor.strides;
    std::vector<std::int64_t> strides(tensor.shape.size());
    auto bytes = static_cast<std::int64_t>(*size_of(tensor.type));
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
        strides[d] = bytes;
        bytes *= tensor.shape[d];
    }
    return strides;
}

Result<std::size_t> bytes_of(const ShowTensor& tensor) {
    constexpr std::int64_t most = 1 << 24;  // more than any memory has
    if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
        return fail(Cause::bad_argument, fmt::format("{} strides for {} dimensions",
                                                     tensor.strides.size(), tensor.shape.size()));
    std::int64_t elements = 1;
    for (const auto size : tensor.shape) {
        if (size > most / elements) return fail(Cause::bad_argument, "the tensor is too large");
        elements *= size;
    }
    const auto strides = strides_of(tensor);
    std::int64_t end = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) {
        if (strides[d] < 0 || strides[d] > most)
            return fail(Cause::bad_argument, "strides are 0 or more, and within a memory");
        end += strides[d] * (std::int64_t{tensor.shape[d]} - 1);
        if (end > most) return fail(Cause::bad_argument, "the tensor is too large");
    }
    return static_cast<std::size_t>(end) + *size_of(tensor.type);
}

}  // namespace reef::tool::debug
