// reef doctor: why an Edge TPU on USB does not work, one line a check.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "json_output.h"
#include "usb_checks.h"
#include "verb.h"

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

void print_text(Console& console, const std::vector<Check>& checks) {
    std::size_t width = 0;
    for (const Check& check : checks) width = std::max(width, check.name.size());
    for (const Check& check : checks) {
        const auto colour = check.state == Check::State::good      ? fmt::terminal_color::green
                            : check.state == Check::State::warning ? fmt::terminal_color::yellow
                                                                   : fmt::terminal_color::red;
        console.print("{}  {:<{}}  {}{}\n",
                      console.styled(fmt::fg(colour), fmt::format("{:<7}", to_string(check.state))),
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
        "Exit code 0 when nothing is bad, 3 otherwise.\n"
        "Examples:\n"
        "  reef doctor\n"
        "  reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules");
    return [options](Console& console) -> Result<Exit> {
        if (options->udev_rule) {
            console.write(udev_rule());
            return Exit::ok;
        }
        const auto bus = REEF_TRY(edgetpu::usb::libusb_bus());
        const auto checks = check_usb(*bus);
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
