// reef asm: text to a chip's instruction stream.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "reef/base/file.h"
#include "reef/runtime/program_streams.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct AsmOptions {
    std::string file;
    std::string out;
    std::string stream;
    std::string chip;
    bool json = false;
};

Result<std::vector<std::byte>> chosen(std::vector<hw::AssembledStream> streams,
                                      const std::string& name) {
    if (name.empty() && streams.empty()) return std::vector<std::byte>{};
    if (name.empty() && streams.size() == 1) return std::move(streams[0].bytes);
    std::string names;
    for (auto& stream : streams) {
        if (!name.empty() && stream.name == name) return std::move(stream.bytes);
        names += (names.empty() ? "" : ", ") + stream.name;
    }
    if (name.empty())
        return fail(Cause::bad_argument,
                    fmt::format("the text has {} streams: {}", streams.size(), names), {},
                    "choose one with --stream");
    return fail(Cause::bad_argument, fmt::format("no stream '{}'", name), {},
                names.empty() ? "the text has none" : "there are " + names);
}

Result<Exit> asm_verb(const AsmOptions& options, Console& console) {
    REEF_CHECK(check_output_file(options.out, {options.file}));
    REEF_CHECK(check_apart_from_json(options.out, options.json));
    const chip::Disassembler* disassembler = REEF_TRY(runtime::disassembler_of(options.chip));
    const auto text = REEF_TRY(read_file(options.file));
    auto streams =
        REEF_TRY(of_file(in_place(disassembler->assemble(as_text(text.view())), options.file)));
    const auto bytes = REEF_TRY(in_place(chosen(std::move(streams), options.stream), options.file));
    if (bytes.empty())
        return fail(Cause::bad_input, "the text holds no instructions", options.file);
    REEF_CHECK(write_output(options.out, bytes));
    const std::size_t words = bytes.size() / disassembler->instruction_set().word_bytes;
    if (options.json) {
        Json document = json_document("asm");
        document["file"] = options.file;
        document["chip"] = disassembler->family();
        document["output"] = options.out;
        document["bytes"] = bytes.size();
        document["words"] = words;
        print_json(console, document);
    } else if (options.out != "-") {
        console.print("{}: {} words\n", options.out, words);
    }
    return Exit::ok;
}

}  // namespace

Action add_asm(CLI::App& app) {
    auto options = std::make_shared<AsmOptions>();
    app.add_option("TEXT", options->file,
                   "Text as reef disasm prints it, plain or symbolic; - reads standard input")
        ->required();
    app.add_option("-o,--output,--out", options->out,
                   "The raw stream to write; - writes standard output")
        ->required()
        ->type_name("FILE");
    app.add_option("--stream", options->stream, "Which stream, when the text has several")
        ->type_name("NAME");
    app.add_option("--chip", options->chip, "Whose instructions they are")->type_name("FAMILY");
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(
        "Examples:\n"
        "  reef asm net.s -o net.bin\n"
        "  reef disasm net.tflite | reef asm - --stream 0-EXECUTION_ONLY -o net.bin");
    return [options](Console& console) { return asm_verb(*options, console); };
}

}  // namespace reef::tool
