// reef doctor: why a chip does not work on this machine, one line a check.
#include "reef/chip/doctor.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "outputs/json_output.h"
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

}  // namespace

Action add_doctor(CLI::App& app) {
    auto options = std::make_shared<DoctorOptions>();
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--udev-rule", options->udev_rule,
                 "Print the udev rule that lets users open the devices, and nothing else")
        ->excludes(json);
    app.footer(
        "Each check is good, a note, unknown (it cannot be looked at from here), a warning or bad. "
        "Exit\ncode 0 when nothing is bad, 3 otherwise.\n"
        "Examples:\n"
        "  reef doctor\n"
        "  reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules");
    return [options](Console& console) -> Result<Exit> {
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
