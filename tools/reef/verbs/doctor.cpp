// reef doctor: why a chip does not work on this machine, one line a check.
#include "reef/chip/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/chip/prober.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using chip::Check;

std::vector<const chip::Doctor*> doctors() {
    return runtime::Registry::of_process().parts<chip::Doctor>();
}

struct DoctorOptions {
    bool json = false;
    bool udev_rule = false;
    std::string device, probe_file;
};

std::string_view state_text(Check::State state) {
    switch (state) {
        case Check::State::good:
            return "good";
        case Check::State::note:
            return "note";
        case Check::State::unknown:
            return "unknown";
        case Check::State::warning:
            return "warning";
        case Check::State::bad:
            break;
    }
    return "bad";
}

Json to_json(const std::vector<Check>& checks) {
    Json document = json_document("doctor");
    document["checks"] = Json::array();
    for (const Check& check : checks) {
        document["checks"].push_back({{"name", check.name},
                                      {"state", state_text(check.state)},
                                      {"what", check.what},
                                      {"fix", check.fix}});
    }
    return document;
}

fmt::terminal_color colour_of(Check::State state) {
    switch (state) {
        case Check::State::good:
        case Check::State::note:
            return fmt::terminal_color::green;
        case Check::State::unknown:
        case Check::State::warning:
            return fmt::terminal_color::yellow;
        case Check::State::bad:
            break;
    }
    return fmt::terminal_color::red;
}

void print_text(Console& console, const std::vector<Check>& checks) {
    std::size_t width = 0;
    for (const Check& check : checks) width = std::max(width, check.name.size());
    for (const Check& check : checks) {
        console.print("{}  {:<{}}  {}{}\n",
                      console.styled(fmt::fg(colour_of(check.state)),
                                     fmt::format("{:<7}", state_text(check.state))),
                      check.name, width, printable(check.what),
                      check.fix.empty() ? "" : fmt::format(" -> {}", printable(check.fix)));
    }
}

Json to_json(const std::string& device, const std::vector<chip::ProbeAnswer>& answers) {
    Json document = json_document("doctor");
    document["device"] = device;
    document["answers"] = Json::array();
    for (const auto& each : answers)
        document["answers"].push_back({{"question", each.question},
                                       {"answer", each.answer},
                                       {"set", each.set},
                                       {"expected", each.expected}});
    return document;
}

/// What small programs show of the device: printed, and written to the file.
Result<Exit> probe(const DoctorOptions& options, Console& console) {
    const auto& registry = runtime::Registry::of_process();
    const auto found = REEF_TRY(registry.find(options.device));
    const auto* prober = registry.part<chip::Prober>(found.driver->family());
    if (prober == nullptr)
        return fail(Cause::bad_argument, "there are no questions about this chip", options.device);
    REEF_CHECK(check_apart_from_print(options.probe_file, "--probe"));
    REEF_CHECK(check_output_file(options.probe_file, {}));
    const auto answers = REEF_TRY(prober->probe(options.device));
    const Json document = to_json(options.device, answers);
    REEF_CHECK(write_output(options.probe_file, as_bytes(document.dump(2) + "\n")));
    if (options.json) {
        print_json(console, document);
    } else {
        TextTable table({{"question"}, {"answer"}, {"set"}});
        for (const auto& each : answers)
            table.add({each.question, each.answer, in_flags(each.set)});
        table.print(console);
    }
    return std::ranges::all_of(answers, &chip::ProbeAnswer::expected) ? Exit::ok : Exit::failed;
}

}  // namespace

Action add_doctor(CLI::App& app) {
    auto options = std::make_shared<DoctorOptions>();
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    auto* udev_rule =
        app.add_flag("--udev-rule", options->udev_rule,
                     "Print the udev rule that lets users open the devices, and nothing else")
            ->excludes(json);
    auto* device = app.add_option("--device", options->device, "The device that is probed");
    app.add_option("--probe", options->probe_file,
                   "Run small programs on the device that show what no public fact tells, and "
                   "write the answers to FILE (JSON)")
        ->type_name("FILE")
        ->needs(device)
        ->excludes(udev_rule);
    device->needs("--probe");
    app.footer(
        "Each check is good, a note, unknown (it cannot be looked at from here), a warning or bad. "
        "Exit\ncode 0 when nothing is bad, 3 otherwise; of a probe 0 when the device does what its "
        "simulator does\nunasked, 1 otherwise.\n"
        "Examples:\n"
        "  reef doctor\n"
        "  reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules");
    return [options](Console& console) -> Result<Exit> {
        if (!options->probe_file.empty()) return probe(*options, console);
        if (options->udev_rule) {
            for (const auto* doctor : doctors()) console.write(doctor->udev_rule());
            return Exit::ok;
        }
        std::vector<Check> checks;
        for (const auto* doctor : doctors())
            std::ranges::move(doctor->check(), std::back_inserter(checks));
        if (options->json) {
            print_json(console, to_json(checks));
        } else {
            print_text(console, checks);
        }
        const bool bad = std::ranges::any_of(
            checks, [](const Check& check) { return check.state == Check::State::bad; });
        return bad ? Exit::device : Exit::ok;
    };
}

}  // namespace reef::tool
