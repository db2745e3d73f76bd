// reef disasm: the chip programs of a file as text or JSON, and their check.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "check/program_check.h"
#include "inputs/file_kinds.h"
#include "inputs/option_values.h"
#include "outputs/instruction_json.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/runtime/program_streams.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using runtime::ProgramStreams;

struct DisasmOptions {
    std::string file;
    std::string executable;
    std::string chip;
    bool symbolic = false;
    bool no_addresses = false;
    bool check = false;
    bool data = false;
    bool guesses = false;
    bool json = false;
};

std::string place_of(const DisasmOptions& options, const ProgramStreams& program,
                     std::size_t chunk) {
    if (program.type == "raw") return options.file;
    return fmt::format("{}: executable {}", options.file, program.chunk_name(chunk));
}

Status refuse_data(const DisasmOptions& options, const std::vector<ProgramStreams>& programs) {
    for (const auto& program : programs) {
        for (std::size_t c = 0; c < program.chunks.size(); ++c) {
            auto decoded = hw::decode(program.disassembler->instruction_set(), program.chunks[c]);
            if (!decoded)
                return std::unexpected(std::move(decoded.error())
                                           .with_hint("--data shows such words as data")
                                           .in(place_of(options, program, c)));
        }
    }
    return {};
}

void print_text(Console& console, const std::vector<ProgramStreams>& programs,
                const DisasmOptions& options) {
    const chip::TextOptions text{.symbolic = options.symbolic, .addresses = !options.no_addresses};
    const bool several = programs.size() > 1 || programs[0].chunks.size() > 1;
    for (const auto& program : programs) {
        for (std::size_t c = 0; c < program.chunks.size(); ++c) {
            if (several) console.print(".stream {}\n", program.chunk_name(c));
            console.write(program.disassembler->text_of(program.chunks[c], text));
        }
    }
}

void print_programs_json(Console& console, const std::vector<ProgramStreams>& programs,
                         const std::string& file) {
    Json document = json_document("disasm");
    document["file"] = file;
    document["executables"] = Json::array();
    for (const auto& program : programs) {
        Json chunks = Json::array();
        for (const auto chunk : program.chunks) {
            Json instructions = Json::array();
            hw::InstructionCursor cursor(program.disassembler->instruction_set(), chunk);
            while (const auto i = cursor.next()) instructions.push_back(instruction_json(*i));
            chunks.push_back({{"bytes", chunk.size()}, {"instructions", std::move(instructions)}});
        }
        document["executables"].push_back({{"executable", program.executable},
                                           {"type", program.type},
                                           {"chunks", std::move(chunks)}});
    }
    print_json(console, document);
}

/// A field of grade guess that instructions of a program set.
struct SetGuess {
    const hw::InstructionInfo* instruction;
    const hw::FieldInfo* field;
    std::size_t count = 0;           ///< instructions that set it
    std::set<std::uint64_t> values;  ///< that they set
};

std::vector<SetGuess> guesses_in(const ProgramStreams& program) {
    std::map<const hw::FieldInfo*, SetGuess> found;
    for (const auto chunk : program.chunks) {
        hw::InstructionCursor cursor(program.disassembler->instruction_set(), chunk);
        while (const auto one = cursor.next()) {
            if (one->info == nullptr) continue;
            for (const hw::FieldInfo& field : one->info->fields) {
                const bool guess =
                    field.grade == hw::Grade::guess || field.kind == hw::FieldKind::raw;
                if (!guess || one->bits(field) == 0) continue;
                SetGuess& entry =
                    found.try_emplace(&field, SetGuess{one->info, &field, 0, {}}).first->second;
                ++entry.count;
                entry.values.insert(one->bits(field));
            }
        }
    }
    std::vector<SetGuess> list;
    for (auto& [field, entry] : found) list.push_back(std::move(entry));
    std::ranges::sort(list, {}, [](const SetGuess& guess) {
        return std::pair(guess.instruction->name, guess.field->position);
    });
    return list;
}

std::string values_text(const std::set<std::uint64_t>& values) {
    constexpr std::size_t shown = 4;
    std::string text;
    std::size_t count = 0;
    for (const std::uint64_t value : values) {
        if (count++ == shown) return text + fmt::format(" and {} more", values.size() - shown);
        text += fmt::format("{}{:#x}", text.empty() ? "" : " ", value);
    }
    return text;
}

void print_guesses(Console& console, const std::vector<ProgramStreams>& programs) {
    for (const auto& program : programs) {
        const auto guesses = guesses_in(program);
        console.print("{} {}: {}\n", program.executable, program.type,
                      guesses.empty() ? "sets no field whose meaning is a guess"
                                      : "sets these fields, whose meaning is a guess");
        if (guesses.empty()) continue;
        TextTable table({{"instruction"},
                         {"field"},
                         {"bit", Align::right},
                         {"width", Align::right},
                         {"set in", Align::right},
                         {"values"},
                         {"guess"}});
        for (const auto& [instruction, field, count, values] : guesses) {
            table.add({std::string(instruction->name), std::string(field->name),
                       std::to_string(field->position), std::to_string(field->width),
                       std::to_string(count), values_text(values),
                       field->kind == hw::FieldKind::raw ? "in no known field"
                                                         : std::string(field->meaning)});
        }
        table.print(console);
    }
}

void print_guesses_json(Console& console, const std::vector<ProgramStreams>& programs,
                        const std::string& file) {
    Json document = json_document("disasm");
    document["file"] = file;
    document["executables"] = Json::array();
    for (const auto& program : programs) {
        Json list = Json::array();
        for (const auto& [instruction, field, count, values] : guesses_in(program)) {
            list.push_back({{"instruction", instruction->name},
                            {"field", field->name},
                            {"position", field->position},
                            {"width", field->width},
                            {"instructions", count},
                            {"values", values},
                            {"meaning", field->meaning}});
        }
        document["executables"].push_back({{"executable", program.executable},
                                           {"type", program.type},
                                           {"guesses", std::move(list)}});
    }
    print_json(console, document);
}

Result<Exit> disasm_verb(const DisasmOptions& options, Console& console) {
    const auto file = REEF_TRY(read_file(options.file));
    REEF_CHECK(in_place(refuse_empty(file.view()), options.file));
    auto programs =
        REEF_TRY(in_place(runtime::program_streams_of(file, options.chip), options.file));
    programs = REEF_TRY(
        in_place(runtime::select_programs(std::move(programs), options.executable), options.file));
    if (options.check)
        return check_programs(console, "disasm", programs, options.file, options.json);
    if (!options.data) REEF_CHECK(refuse_data(options, programs));
    if (options.guesses) {
        if (options.json) {
            print_guesses_json(console, programs, options.file);
        } else {
            print_guesses(console, programs);
        }
        return Exit::ok;
    }
    if (options.json) {
        print_programs_json(console, programs, options.file);
    } else {
        print_text(console, programs, options);
    }
    return Exit::ok;
}

}  // namespace

Action add_disasm(CLI::App& app) {
    auto options = std::make_shared<DisasmOptions>();
    app.add_option("FILE", options->file,
                   "A compiled .tflite file or a raw instruction stream; - reads standard input")
        ->required();
    app.add_option("--executable", options->executable,
                   "Only this one: its number or its type, such as EXECUTION_ONLY")
        ->check(executable_name())
        ->type_name("N|TYPE");
    app.add_option("--chip", options->chip, "Whose instructions a raw stream holds")
        ->type_name("FAMILY");
    app.add_flag("--symbolic", options->symbolic,
                 "Loop nests as base[stride x count], tiles, counters and registers by name, "
                 "descriptors in words; a ? marks guesses");
    app.add_flag("--no-addresses", options->no_addresses, "Leave out the word addresses");
    app.add_flag("--data", options->data,
                 "Show words that are no instructions as data instead of refusing the file");
    auto* check =
        app.add_flag("--check", options->check,
                     "Check the programs' form and synchronisation instead of showing them");
    auto* guesses = app.add_flag("--guesses", options->guesses,
                                 "List the fields that the programs set and whose meaning is a "
                                 "guess, instead of showing the programs");
    app.add_flag("--json", options->json, "Print JSON")->excludes("--symbolic");
    check->excludes("--symbolic");
    guesses->excludes("--symbolic")->excludes("--check");
    app.footer(
        "Examples:\n"
        "  reef disasm net.tflite --symbolic\n"
        "  reef disasm net.tflite --executable EXECUTION_ONLY > net.s\n"
        "  reef disasm net.tflite --check\n"
        "  reef disasm net.tflite --guesses\n"
        "The text goes back to the same bytes with reef asm. Exit code 1 when a rule is broken.");
    return [options](Console& console) { return disasm_verb(*options, console); };
}

}  // namespace reef::tool
