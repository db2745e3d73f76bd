// reef list: the devices that --device accepts.
#include <CLI/CLI.hpp>
#include <memory>

#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/edgetpu/usb/transport.h"
#include "usb/usb_checks.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct Listed {
    std::string device, state, details;
};

std::vector<Listed> devices(std::string& problem) {
    std::vector<Listed> all = {{"cpu", "ready", "this processor"},
                               {"edgetpu:sim", "ready", "a simulated chip"}};
    const auto bus = edgetpu::usb::libusb_bus();
    if (!bus) {
        problem = bus.error().message();
        return all;
    }
    const auto sticks = (*bus)->list();
    if (!sticks) {
        problem = sticks.error().what;
        return all;
    }
    for (const auto& stick : *sticks) {
        all.push_back({fmt::format("edgetpu:usb:{}", stick.port), state_of(stick),
                       fmt::format("{:04x}:{:04x}, {}", stick.vendor, stick.product,
                                   to_string(stick.speed))});
    }
    return all;
}

}  // namespace

Action add_list(CLI::App& app) {
    auto json = std::make_shared<bool>(false);
    app.add_flag("--json", *json, "Print JSON");
    app.footer(
        "Sticks are named by their USB port, which stays when they are plugged in again. Exit code "
        "3 "
        "when\nUSB cannot be read.\n"
        "Examples:\n"
        "  reef list\n"
        "  reef list --json | jq -r '.devices[].device'");
    return [json](Console& console) -> Result<Exit> {
        std::string problem;
        const auto all = devices(problem);
        if (!problem.empty()) print_diagnostic("list", "USB cannot be read: " + problem);
        if (*json) {
            Json document = json_document("list");
            document["devices"] = Json::array();
            for (const Listed& each : all) {
                document["devices"].push_back(
                    {{"device", each.device}, {"state", each.state}, {"details", each.details}});
            }
            document["usb_error"] = problem.empty() ? Json() : Json(problem);
            print_json(console, document);
        } else {
            TextTable table({{"device"}, {"state"}, {"details"}});
            for (const Listed& each : all) table.add({each.device, each.state, each.details});
            table.print(console);
        }
        return problem.empty() ? Exit::ok : Exit::device;
    };
}

}  // namespace reef::tool
