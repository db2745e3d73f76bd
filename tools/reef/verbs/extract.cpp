// reef extract: the parts of a file of a kind that is known, as files of their own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "inputs/file_kinds.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/chip/file_kind.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct ExtractOptions {
    std::string file;
    std::vector<std::string> parts;
    std::string out;
    bool json = false;
};

/// Those whose names begin with one of `wanted`; all when it is empty.
Result<std::vector<chip::FilePart>> selected(std::vector<chip::FilePart> parts,
                                             const std::vector<std::string>& wanted) {
    for (const std::string& name : wanted) {
        const auto begins = [&](const auto& part) { return part.name.starts_with(name); };
        if (std::ranges::any_of(parts, begins)) continue;
        std::vector<std::string> names;
        for (const auto& part : parts) names.push_back(part.name);
        return fail(
            Cause::bad_argument, fmt::format("no part '{}'", name), {},
            names.empty() ? "the file has no parts" : "there are " + runtime::in_a_row(names));
    }
    if (!wanted.empty())
        std::erase_if(parts, [&](const auto& part) {
            return std::ranges::none_of(
                wanted, [&](const auto& name) { return part.name.starts_with(name); });
        });
    return parts;
}

Status write_parts(const std::vector<chip::FilePart>& parts, const std::string& folder,
                   const std::string& input) {
    std::vector<NamedContents> files;
    for (const auto& part : parts) {
        const auto path = std::filesystem::path(folder) / part.name;
        std::error_code ignored;
        if (std::filesystem::exists(path, ignored))
            REEF_CHECK(check_output_file(path.string(), {input}));
        files.push_back({part.name, part.bytes.view()});
    }
    return write_outputs_below(folder, files);
}

Result<Exit> extract_verb(const ExtractOptions& options, Console& console) {
    if (!options.out.empty()) REEF_CHECK(check_folder_and_above(options.out));
    const SharedBytes file = REEF_TRY(read_file(options.file, FileAccess::scattered));
    const auto* extractor = kind_of<chip::FileExtractor>(file.view());
    if (extractor == nullptr) {
        if (is_tflite(file.view()))
            return fail(Cause::bad_input, "a TFLite model has no parts to take out", options.file,
                        "reef weights get takes out its weights");
        REEF_CHECK(in_place(refuse_unknown_kind<chip::FileExtractor>(file.view()), options.file));
    }
    auto parts = REEF_TRY(in_place(extractor->parts_of(file), options.file));
    parts = REEF_TRY(in_place(selected(std::move(parts), options.parts), options.file));
    if (!options.out.empty()) REEF_CHECK(write_parts(parts, options.out, options.file));
    if (options.json) {
        Json document = json_document("extract");
        document["file"] = options.file;
        document["kind"] = extractor->kind();
        document["parts"] = Json::array();
        for (const auto& part : parts)
            document["parts"].push_back(
                {{"name", part.name}, {"what", part.what}, {"bytes", part.bytes.size()}});
        print_json(console, document);
        return Exit::ok;
    }
    TextTable table({{"part"}, {"bytes", Align::right}, {"what"}});
    for (const auto& part : parts)
        table.add({part.name, std::to_string(part.bytes.size()), part.what});
    table.print(console);
    return Exit::ok;
}

}  // namespace

Action add_extract(CLI::App& app) {
    const auto extractors = runtime::Registry::of_process().parts<chip::FileExtractor>();
    auto options = std::make_shared<ExtractOptions>();
    app.add_option("FILE", options->file,
                   "A file of a kind that has parts: " + known_kinds<chip::FileExtractor>())
        ->required();
    app.add_option("PART", options->parts, "Only parts whose names begin with one of these");
    app.add_option("-o,--output", options->out,
                   "The folder to write them to; without it they are only listed")
        ->type_name("FOLDER");
    app.add_flag("--json", options->json, "Print JSON");
    std::string examples = "Examples:";
    for (const auto* extractor : extractors) {
        examples += fmt::format("\n  reef extract net.{}", extractor->ending());
        for (const std::string_view part : extractor->example_parts())
            examples +=
                fmt::format("\n  reef extract net.{} {} -o parts", extractor->ending(), part);
    }
    app.footer(examples);
    return [options](Console& console) { return extract_verb(*options, console); };
}

}  // namespace reef::tool
