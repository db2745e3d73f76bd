// reef doctor: why an Edge TPU on USB does not work, one line a check.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "outputs/json_output.h"
#include "usb/usb_checks.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct DoctorOptions {
    bool json = false;
    bool udev_rule = false;
};

Json to_json(const std::vector<Check>& checks) {
    Json document = json_document("doctor");
    document["checks"] = Json::array();
    for (const Check& check : checks) {
        document["checks"].push_back({{"name", check.name},
                                      {"state", to_string(check.state)},
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
                                     fmt::format("{:<7}", to_string(check.state))),
                      check.name, width, printable(check.what),
                      check.fix.empty() ? "" : fmt::format(" -> {}", printable(check.fix)));
    }
}

}  // namespace

Action add_doctor(CLI::App& app) {
    auto options = std::make_shared<DoctorOptions>();
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--udev-rule", options->udev_rule,
                 "Print the udev rule that lets users open a stick, and nothing else")
        ->excludes(json);
    app.footer(
        "Each check is good, a note, unknown (it cannot be looked at from here), a warning or bad. "
        "Exit\ncode 0 when nothing is bad, 3 otherwise.\n"
        "Examples:\n"
        "  reef doctor\n"
        "  reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules");
    return [options](Console& console) -> Result<Exit> {
        if (options->udev_rule) {
            console.write(udev_rule());
            return Exit::ok;
        }
        const auto checks = check_usb(edgetpu::usb::libusb_bus());
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
