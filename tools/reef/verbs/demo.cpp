// reef demo: two networks made from formulas watch a ball approach.
#include "final_mlir/demo.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "demo/on_chips.h"
#include "demo/run.h"
#include "demo/scene.h"
#include "inputs/option_values.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "pictures/image.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct DemoOptions {
    std::string what = "approach";
    std::string folder = "demo";
    int frames = 32;
    bool json = false;
};

struct OutputFile {
    std::string name;
    std::string content;  ///< what it shows, for the list that is printed
    std::vector<std::byte> bytes;
};

std::string_view name_of(apps::Motion motion) {
    switch (motion) {
        case apps::Motion::approaching:
            return "approaching";
        case apps::Motion::receding:
            return "receding";
        case apps::Motion::steady:
            break;
    }
    return "steady";
}

std::string seconds_text(const std::optional<double>& seconds) {
    return seconds ? fmt::format("{:.2f}", *seconds) : "-";
}

Result<std::vector<std::byte>> picture_png(const DemoRun& run, const DemoFrame& frame) {
    std::vector<std::uint8_t> rgb;
    for (const std::uint8_t grey : frame.picture) rgb.insert(rgb.end(), 3, grey);
    return encode_png(run.side, run.side, rgb);
}

std::string compiled_name(const DemoNetworkOnChip& network, const DemoOnChip& chip) {
    return fmt::format("{}_64x64_{}.tflite", network.name, chip.family);
}

Result<std::vector<OutputFile>> output_files(const DemoModels& models, const DemoRun& run,
                                             const std::vector<DemoOnChip>& chips) {
    const drawing::Canvas strip = draw_demo(run);
    const DemoFrame& last = run.frames.back();
    std::vector<OutputFile> files;
    files.push_back({"strip.png", "the run in one picture",
                     REEF_TRY(encode_png(strip.width(), strip.height(), strip.rgb()))});
    files.push_back({"frame.png", fmt::format("frame {} as the networks saw it", last.index),
                     REEF_TRY(picture_png(run, last))});
    files.push_back({"looming_64x64.tflite", "the looming network",
                     REEF_TRY(model::write_tflite(models.looming))});
    files.push_back(
        {"gabor_64x64.tflite", "the Gabor network", REEF_TRY(model::write_tflite(models.gabor))});
    for (const DemoOnChip& chip : chips)
        for (const DemoNetworkOnChip& network : chip.networks)
            files.push_back({compiled_name(network, chip),
                             fmt::format("the same for the {}", chip.chip),
                             REEF_TRY(model::write_tflite(network.compiled))});
    return files;
}

Status write_files(const std::string& folder, const std::vector<OutputFile>& files) {
    std::vector<NamedContents> contents;
    for (const OutputFile& file : files) contents.push_back({file.name, file.bytes});
    Status status = write_outputs_below(folder, contents);
    // Whatever stood in the way, the command line was right: exit code 1.
    if (!status) status.error().cause = Cause::io_failed;
    return status;
}

void print_table(const DemoRun& run, Console& console) {
    console.print("A ball {:.2f} m wide hangs still for {:.1f} s, then comes at {:.2f} m/s.\n",
                  run.ball_width, run.still_frames * run.frame_time, run.speed);
    console.print("{0}x{0} grey pictures, {1:.0f} per second; both networks run on {2}.\n\n",
                  run.side, 1 / run.frame_time, run.device);
    TextTable table({{"frame", Align::right},
                     {"time s", Align::right},
                     {"distance m", Align::right},
                     {"true contact s", Align::right},
                     {"tau", Align::right},
                     {"estimated contact s", Align::right},
                     {"verdict"}});
    for (const DemoFrame& frame : run.frames) {
        table.add({fmt::format("{}", frame.index), fmt::format("{:.1f}", frame.time),
                   fmt::format("{:.2f}", frame.distance), seconds_text(frame.true_time),
                   fmt::format("{:.2f}", frame.tau), seconds_text(frame.estimate.time_to_contact),
                   std::string(name_of(frame.estimate.motion))});
    }
    table.print(console);
    console.print(
        "\ntau is the edge energy of the middle zone over the mean of the eight around it. It "
        "grows\nas 1 / distance while the ball stays inside the middle zone; a least-squares line "
        "through\nthe last {} values of 1 / tau, followed to zero, gives the time to contact.\n",
        run.window);
    if (run.mean_relative_error) {
        console.print(
            "Mean error of the time to contact once that line saw only the moving ball: "
            "{:.0f} %.\n",
            *run.mean_relative_error * 100);
    }
}

void print_chips(const std::vector<DemoOnChip>& chips, const DemoRun& run, Console& console) {
    if (chips.empty()) return;
    console.print(
        "\nThe same pictures through the same networks, compiled by Reef, on simulated chips:\n\n");
    TextTable table({{"device"},
                     {"network"},
                     {"operators on the chip", Align::right},
                     {"bytes as on the CPU", Align::right},
                     {"most apart", Align::right},
                     {"layers alike", Align::right},
                     {"verdicts", Align::right}});
    for (const DemoOnChip& chip : chips)
        for (const DemoNetworkOnChip& network : chip.networks)
            table.add(
                {chip.device, network.name,
                 fmt::format("{} of {}", network.on_chip, network.operators),
                 fmt::format("{:.2f} %", 100.0 - 100.0 * static_cast<double>(network.differing) /
                                                     static_cast<double>(network.bytes)),
                 std::to_string(network.most_apart),
                 fmt::format("{} of {}", network.same_layers, network.layers),
                 &network == &chip.networks.front()
                     ? fmt::format("{} of {}", chip.same_verdicts, run.frames.size())
                     : std::string()});
    table.print(console);
    console.print(
        "\nA chip rounds in its own way, so bytes may be one apart. Layers are the tensors that a "
        "chip\nstores, of the last picture, each against what the CPU makes of the chip's values "
        "in front of\nit (`reef compare --layers`). Programs of this compiler have not run on a "
        "real chip yet.\n");
}

/// How the user can call this program again: "reef" when the search path holds it, else its path.
std::string command_name() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (error) return "reef";
    const char* search = std::getenv("PATH");
    for (std::stringstream folders(search == nullptr ? "" : search); folders.good();) {
        std::string folder;
        std::getline(folders, folder, ':');
        if (fs::equivalent(fs::path(folder) / "reef", self, error)) return "reef";
    }
    const fs::path near = fs::proximate(self, error);
    const bool below = !error && !near.empty() && *near.begin() != "..";
    return (below ? near : self).string();
}

void print_files(const DemoOptions& options, const std::vector<OutputFile>& files,
                 const std::vector<DemoOnChip>& chips, Console& console) {
    const auto path = [&](std::string_view name) {
        return printable((std::filesystem::path(options.folder) / name).string());
    };
    std::size_t widest = 0;
    for (const OutputFile& file : files) widest = std::max(widest, path(file.name).size());
    console.print("\n{}\n", console.heading("Written"));
    for (const OutputFile& file : files) {
        console.print("  {:<{}}  {}\n", path(file.name), widest, file.content);
    }
    const std::string reef = printable(command_name());
    console.print("\n{}\n", console.heading("Try next"));
    console.print("  {} inspect {}\n", reef, path("looming_64x64.tflite"));
    console.print("  {} run {} --input {}\n", reef, path("looming_64x64.tflite"),
                  path("frame.png"));
    console.print("  {} bench {}\n", reef, path("gabor_64x64.tflite"));
    for (const DemoOnChip& chip : chips)
        console.print("  {} run {} --device {} --input {}\n", reef,
                      path(compiled_name(chip.networks.front(), chip)), chip.device,
                      path("frame.png"));
}

Json json_of(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json json_of(const std::vector<DemoOnChip>& chips) {
    Json all = Json::array();
    for (const DemoOnChip& chip : chips)
        for (const DemoNetworkOnChip& network : chip.networks)
            all.push_back({{"family", chip.family},
                           {"device", chip.device},
                           {"network", network.name},
                           {"operators", network.operators},
                           {"on_chip", network.on_chip},
                           {"bytes", network.bytes},
                           {"differing", network.differing},
                           {"most_apart", network.most_apart},
                           {"layers", network.layers},
                           {"same_layers", network.same_layers},
                           {"same_verdicts", chip.same_verdicts}});
    return all;
}

Json to_json(const DemoOptions& options, const DemoRun& run, const std::vector<DemoOnChip>& chips,
             const std::vector<OutputFile>& files) {
    Json document = json_document("demo");
    document["device"] = run.device;
    document["frame_time_s"] = run.frame_time;
    document["still_frames"] = run.still_frames;
    document["speed_m_per_s"] = run.speed;
    document["ball_width_m"] = run.ball_width;
    document["window_frames"] = run.window;
    document["mean_relative_error"] = json_of(run.mean_relative_error);
    document["frames"] = Json::array();
    for (const DemoFrame& frame : run.frames) {
        document["frames"].push_back(
            {{"frame", frame.index},
             {"time_s", frame.time},
             {"distance_m", frame.distance},
             {"true_time_to_contact_s", json_of(frame.true_time)},
             {"zones", frame.zones},
             {"tau", frame.tau},
             {"time_to_contact_s", json_of(frame.estimate.time_to_contact)},
             {"verdict", name_of(frame.estimate.motion)}});
    }
    document["chips"] = json_of(chips);
    document["files"] = Json::array();
    for (const OutputFile& file : files) {
        document["files"].push_back((std::filesystem::path(options.folder) / file.name).string());
    }
    return document;
}

Result<Exit> demo(const DemoOptions& options, Console& console) {
    REEF_CHECK(check_folder_and_above(options.folder));
    if (options.what == "sophgo") {
        REEF_CHECK(run_final_demo(options.folder, options.json, console));
        return Exit::ok;
    }
    const DemoModels models = REEF_TRY(demo_models());
    const DemoRun run = REEF_TRY(run_demo(models, options.frames, "cpu"));
    const auto chips = REEF_TRY(run_demo_on_chips(models, run));
    const auto files = REEF_TRY(output_files(models, run, chips));
    REEF_CHECK(write_files(options.folder, files));
    if (options.json) {
        print_json(console, to_json(options, run, chips, files));
    } else {
        print_table(run, console);
        print_chips(chips, run, console);
        print_files(options, files, chips, console);
    }
    return Exit::ok;
}

}  // namespace

Action add_demo(CLI::App& app) {
    auto options = std::make_shared<DemoOptions>();
    app.add_option(
           "WHAT", options->what,
           "approach: two networks watch an object; sophgo: a fault in a final.mlir is found "
           "and cut out")
        ->check(CLI::IsMember({"approach", "sophgo"}))
        ->capture_default_str();
    app.add_option("-o,--output,--out", options->folder, "Folder for what it writes")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--frames", options->frames, "Length of the sequence")
        ->type_name("N")
        ->check(whole_number(ApproachScene::fewest_frames, ApproachScene::most_frames))
        ->capture_default_str();
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(
        "Examples:\n"
        "  reef demo\n"
        "  reef demo --out approach --frames 60\n"
        "  reef demo sophgo --out demo");
    return [options](Console& console) { return demo(*options, console); };
}

}  // namespace reef::tool
