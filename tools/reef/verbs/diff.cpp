// reef diff: two programs of a chip, instruction by instruction and field by field; two files of a
// kind that a chip's parts know.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "inputs/chips.h"
#include "inputs/file_kinds.h"
#include "inputs/option_values.h"
#include "inspect/chip_text.h"
#include "outputs/instruction_json.h"
#include "reef/base/file.h"
#include "reef/chip/file_kind.h"
#include "reef/hw/program_diff.h"
#include "reef/runtime/program_streams.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using runtime::ProgramStreams;
using Programs = std::vector<ProgramStreams>;

struct DiffOptions {
    std::string a;
    std::string b;
    std::string executable;
    std::string chip;
    bool json = false;
};

constexpr chip::TextOptions text_options{.symbolic = true, .addresses = false};

/// A stream of one side next to the stream of the other with the same place; empty when the other
/// side has none.
struct StreamPair {
    std::string name;
    Bytes a;
    Bytes b;
    const chip::Disassembler* disassembler = nullptr;
    hw::ProgramDiff diff;
};

/// Parameters of the two sides' executables.
struct ParameterPair {
    std::string name;
    std::size_t bytes_a = 0, bytes_b = 0;
    std::size_t different = 0;  ///< bytes; those that only one side has, too
    std::size_t first = 0;      ///< of them
};

ParameterPair pair_parameters(std::string name, Bytes a, Bytes b) {
    ParameterPair pair{std::move(name), a.size(), b.size()};
    const std::size_t both = std::min(a.size(), b.size());
    pair.different = std::max(a.size(), b.size()) - both;
    pair.first = both;
    for (std::size_t i = both; i-- > 0;) {
        if (a[i] == b[i]) continue;
        ++pair.different;
        pair.first = i;
    }
    return pair;
}

struct Pairs {
    std::vector<StreamPair> streams;
    std::vector<ParameterPair> parameters;
    [[nodiscard]] bool same() const {
        return std::ranges::all_of(streams, [](const auto& p) { return p.diff.identical; }) &&
               std::ranges::all_of(parameters, [](const auto& p) { return p.different == 0; });
    }
};

// Executables meet by type and order, chunks by number.
Pairs pair_programs(const Programs& a, const Programs& b) {
    Pairs out;
    std::vector<bool> used(b.size(), false);
    const auto add = [&](const ProgramStreams* left, const ProgramStreams* right) {
        const chip::Disassembler& chip = *(left ? left : right)->disassembler;
        const auto chunks =
            std::max(left ? left->chunks.size() : 0, right ? right->chunks.size() : 0);
        for (std::size_t c = 0; c < chunks; ++c) {
            StreamPair pair{(left ? left : right)->chunk_name(c), {}, {}, &chip, {}};
            if (left && c < left->chunks.size()) pair.a = left->chunks[c];
            if (right && c < right->chunks.size()) pair.b = right->chunks[c];
            pair.diff = hw::diff_programs(chip.instruction_set(), pair.a, pair.b, chip.numbering());
            out.streams.push_back(std::move(pair));
        }
        const Bytes none;
        const Bytes left_bytes = left ? left->parameters.view() : none;
        const Bytes right_bytes = right ? right->parameters.view() : none;
        if (!left_bytes.empty() || !right_bytes.empty())
            out.parameters.push_back(
                pair_parameters(fmt::format("{}-{}", (left ? left : right)->executable,
                                            (left ? left : right)->type),
                                left_bytes, right_bytes));
    };
    for (const auto& program : a) {
        std::size_t match = 0;
        while (match < b.size() && (used[match] || b[match].type != program.type)) ++match;
        if (match < b.size()) used[match] = true;
        add(&program, match < b.size() ? &b[match] : nullptr);
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
        if (!used[i]) add(nullptr, &b[i]);
    }
    return out;
}

/// Whose instructions are printed, for people.
class InstructionText {
  public:
    explicit InstructionText(const chip::Disassembler& disassembler)
        : disassembler_(disassembler) {}

    [[nodiscard]] std::string value(const hw::Instruction& instruction,
                                    const hw::FieldInfo& field) const {
        return disassembler_.field_text(instruction, field, text_options);
    }
    /// Which parts of the chip take it: " tiles=t0-t3"; empty where it does not say so.
    [[nodiscard]] std::string parts(const hw::Instruction& instruction) const {
        const auto* field = instruction.info->find("tiles");
        if (field == nullptr || instruction.bits(*field) == 0) return "";
        return fmt::format(" {}={}", field->name, value(instruction, *field));
    }
    [[nodiscard]] std::string line(const hw::Instruction& instruction) const {
        std::string text;
        disassembler_.append_text(instruction, text_options, text);
        return text;
    }

  private:
    const chip::Disassembler& disassembler_;
};

void print_removed(Console& console, const InstructionText& lines, const hw::Instruction& one) {
    console.print("- {:#06x}         {}\n", one.word, lines.line(one));
}

void print_added(Console& console, const InstructionText& lines, const hw::Instruction& one) {
    console.print("+        {:#06x}  {}\n", one.word, lines.line(one));
}

void print_change(Console& console, const InstructionText& lines,
                  const hw::InstructionChange& change) {
    if (change.fields.empty()) {
        if (change.before) print_removed(console, lines, *change.before);
        if (change.after) print_added(console, lines, *change.after);
        return;
    }
    console.print("  {:#06x} {:#06x}  {}{}\n", change.before->word, change.after->word,
                  change.before->info->name, lines.parts(*change.before));
    for (const auto* field : change.fields)
        console.print("                   {}: {} -> {}\n", field->name,
                      lines.value(*change.before, *field), lines.value(*change.after, *field));
}

void print_pair(Console& console, const StreamPair& pair) {
    if (pair.diff.identical) return console.print("{}: identical\n", pair.name);
    if (pair.a.empty() || pair.b.empty())
        return console.print("{}: only {} has it\n", pair.name, pair.a.empty() ? "B" : "A");
    console.print(
        "{}: {} instructions in both, {} of them differ or stand alone{}\n", pair.name,
        pair.diff.aligned, pair.diff.changes.size(),
        pair.diff.renumbered ? fmt::format(", {} have another number", pair.diff.renumbered) : "");
    const InstructionText lines(*pair.disassembler);
    for (const auto& change : pair.diff.changes) print_change(console, lines, change);
}

void print_parameters(Console& console, const ParameterPair& pair) {
    const std::string sizes = pair.bytes_a == pair.bytes_b
                                  ? fmt::format("{} bytes", pair.bytes_a)
                                  : fmt::format("{} and {} bytes", pair.bytes_a, pair.bytes_b);
    if (pair.different == 0)
        return console.print("{} parameters: identical, {}\n", pair.name, sizes);
    console.print("{} parameters: {} of {} differ, the first at {:#x}\n", pair.name, pair.different,
                  sizes, pair.first);
}

Json change_json(const hw::InstructionChange& change) {
    Json out = Json::object();
    if (change.before) out["before"] = instruction_json(*change.before);
    if (change.after) out["after"] = instruction_json(*change.after);
    if (change.fields.empty()) return out;
    out["fields"] = Json::array();
    for (const auto* field : change.fields)
        out["fields"].push_back({{"name", field->name},
                                 {"before", field_json(*change.before, *field)},
                                 {"after", field_json(*change.after, *field)}});
    return out;
}

void print_pairs_json(Console& console, const Pairs& pairs) {
    Json document = json_document("diff");
    document["same"] = pairs.same();
    document["streams"] = Json::array();
    for (const auto& pair : pairs.streams) {
        Json changes = Json::array();
        for (const auto& change : pair.diff.changes) changes.push_back(change_json(change));
        document["streams"].push_back({{"name", pair.name},
                                       {"identical", pair.diff.identical},
                                       {"aligned", pair.diff.aligned},
                                       {"renumbered", pair.diff.renumbered},
                                       {"changes", std::move(changes)}});
    }
    document["parameters"] = Json::array();
    for (const auto& pair : pairs.parameters) {
        Json json{{"name", pair.name},
                  {"identical", pair.different == 0},
                  {"bytes_a", pair.bytes_a},
                  {"bytes_b", pair.bytes_b},
                  {"different_bytes", pair.different}};
        if (pair.different > 0) json["first_different"] = pair.first;
        document["parameters"].push_back(std::move(json));
    }
    print_json(console, document);
}

Result<Programs> load(const SharedBytes& file, const std::string& path,
                      const DiffOptions& options) {
    REEF_CHECK(in_place(refuse_empty(file.view()), path));
    auto programs = REEF_TRY(in_place(runtime::program_streams_of(file, options.chip), path));
    return in_place(runtime::select_programs(std::move(programs), options.executable), path);
}

/// Of one chip, all of them: else no instruction has its like.
Status check_chips(const DiffOptions& options, const Programs& a, const Programs& b) {
    const auto chip_of = [](const ProgramStreams& program) { return program.disassembler->name(); };
    const std::string_view chip = chip_of(a.front());
    for (const Programs* programs : {&a, &b}) {
        const auto other =
            std::ranges::find_if(*programs, [&](const auto& one) { return chip_of(one) != chip; });
        if (other == programs->end()) continue;
        return fail(Cause::bad_input,
                    fmt::format("a program of the {}, and {} holds one of the {}", chip_of(*other),
                                options.a, chip),
                    programs == &a ? options.a : options.b, "compare programs of one chip");
    }
    return {};
}

Result<Exit> diff_files(const chip::FileComparer& comparer, const SharedBytes& a,
                        const SharedBytes& b, const DiffOptions& options, Console& console) {
    for (const auto& [file, path] : {std::pair(&a, &options.a), std::pair(&b, &options.b)})
        if (!comparer.recognises(file->view()))
            return fail(Cause::bad_input,
                        fmt::format("no {}, as the other file is", comparer.kind()), *path);
    const auto found = REEF_TRY(comparer.differences(a, b));
    if (options.json) {
        Json document = json_document("diff");
        document["kind"] = comparer.kind();
        document["same"] = found.same;
        document.update(tool::to_json(chip::Value(found.report.document)));
        print_json(console, document);
    } else {
        console.print("A {}\nB {}\n", printable(options.a), printable(options.b));
        for (const auto& section : found.report.sections) print_section(console, section);
    }
    return found.same ? Exit::ok : Exit::failed;
}

Result<Exit> diff_verb(const DiffOptions& options, Console& console) {
    const auto file_a = REEF_TRY(read_file(options.a));
    const auto file_b = REEF_TRY(read_file(options.b));
    for (const auto* file : {&file_a, &file_b})
        if (const auto* comparer = kind_of<chip::FileComparer>(file->view()))
            return diff_files(*comparer, file_a, file_b, options, console);
    const auto a = REEF_TRY(load(file_a, options.a, options));
    const auto b = REEF_TRY(load(file_b, options.b, options));
    REEF_CHECK(check_chips(options, a, b));
    const Pairs pairs = pair_programs(a, b);
    if (options.json) {
        print_pairs_json(console, pairs);
    } else {
        for (const auto& pair : pairs.streams) print_pair(console, pair);
        for (const auto& pair : pairs.parameters) print_parameters(console, pair);
    }
    return pairs.same() ? Exit::ok : Exit::failed;
}

}  // namespace

Action add_diff(CLI::App& app) {
    const auto comparers = runtime::Registry::of_process().parts<chip::FileComparer>();
    auto options = std::make_shared<DiffOptions>();
    app.add_option(
           "A", options->a,
           fmt::format("A compiled .tflite file, a raw instruction stream{}",
                       comparers.empty() ? "" : ", or a " + known_kinds<chip::FileComparer>()))
        ->required();
    app.add_option("B", options->b, "What to compare A with")->required();
    app.add_option("--executable", options->executable,
                   "Only this one: its number or its type, such as EXECUTION_ONLY")
        ->check(executable_name())
        ->type_name("N|TYPE");
    app.add_option("--chip", options->chip, "Whose instructions raw streams hold")
        ->type_name("FAMILY");
    app.add_flag("--json", options->json, "Print JSON");
    std::string examples =
        "Examples:\n"
        "  reef diff red_CHIP.tflite green_CHIP.tflite\n"
        "  reef diff mul2.bin div2.bin\n";
    for (const auto* comparer : comparers)
        examples += fmt::format("  reef diff before.{0} after.{0}\n", comparer->ending());
    app.footer(with_example_chip(
        examples +
        "Instructions are compared field by field, parameters byte by byte; which\n"
        "layer a parameter belongs to: reef weights get of both, and reef compare.\n"
        "Exit code 1 when they differ."));
    return [options](Console& console) { return diff_verb(*options, console); };
}

}  // namespace reef::tool
