// reef-edgetpu-compiler: Reef's compiler for the Edge TPU with the options, file names and lines of
// output that scripts around the vendor's edgetpu_compiler expect.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/file.h"
#include "reef/chip/segments.h"
#include "reef/edgetpu/compiler.h"
#include "reef/model/tflite.h"

namespace reef {
namespace {

struct Options {
    std::vector<std::string> models;
    std::string folder = ".";
    bool show_operations = false;
    std::size_t segments = 1;
    std::string runtime_version = "14";

    /// Scripts expect one program of each model.
    [[nodiscard]] edgetpu::CompileOptions settings() const {
        return {.most_programs = 1, .settings = {{"runtime_version", runtime_version}}};
    }
};

std::string size_text(std::size_t bytes) {
    constexpr double kib = 1024;
    const auto n = static_cast<double>(bytes);
    if (n < kib) return fmt::format("{:.2f}B", n);
    if (n < kib * kib) return fmt::format("{:.2f}KiB", n / kib);
    return fmt::format("{:.2f}MiB", n / kib / kib);
}

/// Operators of one name and fate in one line.
std::string operations_text(const edgetpu::Compiled& compiled) {
    std::map<std::pair<std::string, std::string>, std::size_t> lines;
    for (const auto& op : compiled.operators)
        ++lines[{op.name, op.on_chip ? "Mapped to Edge TPU" : op.reason}];
    std::string text = fmt::format("{:<30} {:<10} {}\n\n", "Operator", "Count", "Status");
    for (const auto& [key, count] : lines)
        text += fmt::format("{:<30} {:<10} {}\n", key.first, count, key.second);
    return text;
}

struct Names {
    std::string model, log;
};

std::string summary_of(const std::string& input, std::size_t input_bytes, const Names& names,
                       std::size_t output_bytes, const edgetpu::Compiled& compiled) {
    std::size_t cached = 0, streamed = 0, remaining = 0, on_chip = 0;
    for (const auto& program : compiled.programs) {
        cached += program.cached_bytes;
        streamed += program.streamed_bytes;
        remaining = program.remaining_bytes;
    }
    for (const auto& op : compiled.operators) on_chip += op.on_chip ? 1 : 0;
    const auto file_name = [](const std::string& path) {
        return std::filesystem::path(path).filename().string();
    };
    std::string text;
    text += fmt::format("Input model: {}\nInput size: {}\n", input, size_text(input_bytes));
    text += fmt::format("Output model: {}\nOutput size: {}\n", file_name(names.model),
                        size_text(output_bytes));
    text +=
        fmt::format("On-chip memory used for caching model parameters: {}\n", size_text(cached));
    text += fmt::format("On-chip memory remaining for caching model parameters: {}\n",
                        size_text(remaining));
    text += fmt::format("Off-chip memory used for streaming uncached model parameters: {}\n",
                        size_text(streamed));
    text += fmt::format("Number of Edge TPU subgraphs: {}\n", compiled.programs.size());
    text += fmt::format("Total number of operations: {}\n", compiled.operators.size());
    text += fmt::format("Operation log: {}\n", file_name(names.log));
    if (on_chip < compiled.operators.size())
        text += fmt::format(
            "\nNumber of operations that will run on Edge TPU: {}\n"
            "Number of operations that will run on CPU: {}\n",
            on_chip, compiled.operators.size() - on_chip);
    return text;
}

/// A model, what was made of it, and since when.
struct Job {
    std::string path;
    std::string stem;  ///< of the files' names
    edgetpu::Compiled compiled;
    std::chrono::steady_clock::time_point begin;
};

Names names_of(const std::string& stem, const Options& options) {
    const auto folder = std::filesystem::path(options.folder);
    return {(folder / (stem + "_edgetpu.tflite")).string(),
            (folder / (stem + "_edgetpu.log")).string()};
}

/// Before anything is written: of a model without its log, or of half a pipeline, nobody has use.
Status expect_no_folders(const std::vector<std::string>& stems, const Options& options) {
    std::error_code unknown;
    for (const std::string& stem : stems) {
        const Names names = names_of(stem, options);
        for (const std::string& name : {names.model, names.log})
            if (std::filesystem::is_directory(name, unknown))
                return fail(Cause::io_failed, "is a folder, not a file", name,
                            "remove it, or name another folder with -o");
    }
    return {};
}

/// What is written of a job, and said.
struct Made {
    Names names;
    SharedBytes model;
    std::string log, words;
};

Result<Made> made_of(const Job& job, const Options& options) {
    Made made{.names = names_of(job.stem, options),
              .model = REEF_TRY(model::tflite_file(job.compiled.model)),
              .log = {},
              .words = {}};
    std::error_code unknown;
    const auto size = std::filesystem::file_size(job.path, unknown);
    const std::string summary =
        summary_of(job.path, unknown ? 0 : size, made.names, made.model.size(), job.compiled);
    const std::string operations = operations_text(job.compiled);
    made.log = fmt::format("Reef's compiler for the Edge TPU\n{}\n{}", summary, operations);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - job.begin;
    made.words =
        fmt::format("\nModel compiled successfully in {:.0f} ms.\n\n{}", took.count(), summary);
    if (options.show_operations) made.words += fmt::format("\n{}", operations);
    return made;
}

/// All files, or none.
Status write(const std::vector<Job>& jobs, const Options& options) {
    std::vector<Made> all;
    for (const Job& job : jobs) all.push_back(REEF_TRY(made_of(job, options)));
    std::vector<NamedContents> files;
    for (const Made& made : all) {
        files.push_back({made.names.model, made.model.view()});
        files.push_back({made.names.log, as_bytes(made.log)});
    }
    REEF_CHECK(write_files(files));
    for (const Made& made : all) fmt::print("{}", made.words);
    return {};
}

std::string stem_of(const std::string& path) {
    return std::filesystem::path(path).stem().string();
}

/// Names as the vendor's compiler gives them: NAME_segment_0_of_2_edgetpu.tflite.
Status compile_segments(const Options& options) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string& path = options.models.front();
    const auto model = REEF_TRY(model::load_tflite(path));
    const auto whole = REEF_TRY(in_place(edgetpu::compile(model, options.settings()), path));
    const auto compile_part = [&](const model::Part& part) {
        return edgetpu::compile(part.model,
                                chip::options_of_part(options.settings(), whole.operators, part));
    };
    const auto cost = [&](const model::Part& part) -> Result<double> {
        return REEF_TRY(compile_part(part)).seconds();
    };
    const auto ranges = REEF_TRY(in_place(chip::segments_of(model, options.segments, cost), path));
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const auto part = REEF_TRY(in_place(model::part_of(model, ranges[i]), path));
        jobs.push_back({path, fmt::format("{}_segment_{}_of_{}", stem_of(path), i, ranges.size()),
                        REEF_TRY(in_place(compile_part(part), path)), begin});
    }
    std::vector<std::string> stems;
    for (const Job& job : jobs) stems.push_back(job.stem);
    REEF_CHECK(expect_no_folders(stems, options));
    return write(jobs, options);
}

/// Several models are compiled to lie beside one another on the chip.
Status compile(const Options& options) {
    if (options.segments > 1) return compile_segments(options);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::string> stems;
    for (const auto& path : options.models) stems.push_back(stem_of(path));
    REEF_CHECK(expect_no_folders(stems, options));
    std::vector<model::Model> models;
    for (const auto& path : options.models) models.push_back(REEF_TRY(model::load_tflite(path)));
    std::vector<edgetpu::Compiled> compiled;
    if (models.size() == 1)
        compiled.push_back(REEF_TRY(in_place(edgetpu::compile(models.front(), options.settings()),
                                             options.models.front())));
    else
        compiled = REEF_TRY(edgetpu::compile_together(models, options.settings()));
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < compiled.size(); ++i)
        jobs.push_back({options.models[i], stems[i], std::move(compiled[i]), begin});
    return write(jobs, options);
}

Status refuse(const Options& options) {
    if (options.segments != 1 && options.models.size() != 1)
        return fail(Cause::bad_argument, "one model is divided into segments, not several", {},
                    "give one model, or leave out -n");
    return {};
}

/// Options of the vendor's compiler that this one has not.
struct Missing {
    std::string_view letter, name, instead;
};
constexpr auto missing = std::to_array<Missing>({
    {"-a", "--enable_multiple_subgraphs",
     "reef compile MODEL --target edgetpu --max-programs N makes several programs"},
    {"-t", "--timeout_sec", "leave it out: no compilation is ended by time"},
    {"-d", "--search_delegate",
     "leave it out: operators that do not fit stay with the CPU unasked"},
    {"-k", "--delegate_search_step", "leave it out: nothing is searched in steps"},
    {"-i", "--intermediate_tensors", "-n divides a model into segments of like time"},
});

/// As the command `reef` ends.
constexpr int usage_error = 2;

int refuse(const CLI::ParseError& error, std::span<const char* const> words) {
    for (const std::string_view word : words) {
        const std::string_view name = word.substr(0, word.find('='));
        for (const Missing& one : missing) {
            if (name != one.letter && name != one.name) continue;
            fmt::print(stderr, "reef-edgetpu-compiler: {} is not an option of this compiler ({})\n",
                       name, one.instead);
            return usage_error;
        }
    }
    const std::string_view text = error.what();
    fmt::print(stderr, "reef-edgetpu-compiler: {} (see reef-edgetpu-compiler --help)\n",
               text.substr(0, text.find('\n')));
    return usage_error;
}

int run(int argc, char** argv) {
    CLI::App app{"Compiles TensorFlow Lite models for the Edge TPU"};
    Options options;
    app.name("reef-edgetpu-compiler");
    app.add_option("MODEL", options.models,
                   "Plain quantised .tflite files; several share the chip's memory")
        ->required();
    app.add_option("-o,--out_dir", options.folder, "Folder to write to (default: .)");
    app.add_flag("-s,--show_operations", options.show_operations, "Print the log of operations");
    app.add_option("-n,--num_segments", options.segments,
                   "Segments of a pipeline, one for each chip (default: 1)")
        ->check(CLI::Range(1, 1000));
    app.add_option("-m,--min_runtime_version", options.runtime_version,
                   "Oldest runtime that takes the programs: 10 to 14 (default)");
    app.set_version_flag("-v,--version",
                         "Edge TPU Compiler version 16.0 compatible, reef " REEF_VERSION);
    app.footer("Example:\n  reef-edgetpu-compiler -s -o out mobilenet.tflite");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        return refuse(error, {argv + 1, argv + argc});
    }
    fmt::print("Edge TPU Compiler, reef {}\n", REEF_VERSION);
    auto status = refuse(options);
    if (status) status = compile(options);
    if (status) return 0;
    fmt::print(stderr, "reef-edgetpu-compiler: {}\n", status.error().message());
    return status.error().cause == Cause::bad_argument ? usage_error : 1;
}

}  // namespace
}  // namespace reef

int main(int argc, char** argv) {
    return reef::run(argc, argv);
}
