// reef list: the devices that --device accepts, and what drives them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>

#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using runtime::Driver;

struct ListOptions {
    bool json = false;
    bool drivers = false;
};

runtime::Enumeration enumerate_all() {
    runtime::Enumeration all;
    for (const Driver* driver : runtime::Registry::of_process().drivers()) {
        auto found = driver->enumerate();
        std::ranges::move(found.devices, std::back_inserter(all.devices));
        std::ranges::move(found.buses, std::back_inserter(all.buses));
    }
    return all;
}

std::string upper_case(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

Exit list_devices(bool json, Console& console) {
    const runtime::Enumeration all = enumerate_all();
    bool problems = false;
    for (const auto& bus : all.buses) {
        if (!bus.problem) continue;
        problems = true;
        print_diagnostic("list",
                         fmt::format("{} cannot be read: {}", upper_case(bus.name), *bus.problem));
    }
    if (json) {
        Json document = json_document("list");
        document["devices"] = Json::array();
        for (const auto& each : all.devices)
            document["devices"].push_back(
                {{"device", each.uri}, {"state", each.state}, {"details", each.details}});
        for (const auto& bus : all.buses)
            document[bus.name + "_error"] = bus.problem ? Json(*bus.problem) : Json();
        print_json(console, document);
    } else {
        TextTable table({{"device"}, {"state"}, {"details"}});
        for (const auto& each : all.devices) table.add({each.uri, each.state, each.details});
        table.print(console);
    }
    return problems ? Exit::device : Exit::ok;
}

std::string capabilities_text(const runtime::BackendInfo& backend) {
    std::string text;
    for (const auto capability : backend.capabilities)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(capability));
    return text;
}

/// "flag", "fast or plain", "1 to 7": what values the option takes.
std::string values_text(const runtime::OptionInfo& option) {
    if (option.type == runtime::OptionType::choice) return runtime::in_a_row(option.choices, "or");
    return std::string(to_string(option.type));
}

std::string backends_text(const Driver& driver, const runtime::OptionInfo& option) {
    return option.backends.empty() ? std::string(driver.family())
                                   : runtime::in_a_row(option.backends, "and");
}

void print_drivers(Console& console) {
    bool first = true;
    for (const Driver* driver : runtime::Registry::of_process().drivers()) {
        console.print("{}{}: {}\n", first ? "" : "\n", console.heading(driver->family()),
                      driver->sentence());
        first = false;
        TextTable backends({{"device"}, {"capabilities"}, {"what it is"}});
        for (const auto& backend : driver->backends())
            backends.add({form_of(*driver, backend), capabilities_text(backend), backend.sentence});
        backends.print(console);
        if (driver->options().empty()) continue;
        console.print("\n");
        TextTable options({{"option"}, {"of"}, {"values"}, {"default"}, {"what it does"}});
        for (const auto& option : driver->options())
            options.add({option.name, backends_text(*driver, option), values_text(option),
                         option.standard ? runtime::to_string(*option.standard) : std::string(),
                         option.sentence});
        options.print(console);
    }
}

Json value_json(const std::optional<runtime::OptionValue>& value) {
    if (!value) return nullptr;
    return std::visit([](const auto& known) { return Json(known); }, *value);
}

Json option_json(const runtime::OptionInfo& option) {
    Json json = {{"name", option.name},
                 {"type", to_string(option.type)},
                 {"default", value_json(option.standard)},
                 {"sentence", option.sentence},
                 {"backends", option.backends}};
    if (option.type == runtime::OptionType::choice) json["choices"] = option.choices;
    if (option.type == runtime::OptionType::integer) {
        json["least"] = option.least;
        json["most"] = option.most;
    }
    return json;
}

Json driver_json(const Driver& driver) {
    Json json = {{"family", driver.family()}, {"sentence", driver.sentence()}};
    json["backends"] = Json::array();
    for (const auto& backend : driver.backends()) {
        Json capabilities = Json::array();
        for (const auto capability : backend.capabilities)
            capabilities.push_back(to_string(capability));
        json["backends"].push_back({{"backend", backend.backend},
                                    {"form", form_of(driver, backend)},
                                    {"sentence", backend.sentence},
                                    {"capabilities", std::move(capabilities)}});
    }
    json["options"] = Json::array();
    for (const auto& option : driver.options()) json["options"].push_back(option_json(option));
    return json;
}

Exit list_drivers(bool json, Console& console) {
    if (!json) {
        print_drivers(console);
        return Exit::ok;
    }
    Json document = json_document("list");
    document["drivers"] = Json::array();
    for (const Driver* driver : runtime::Registry::of_process().drivers())
        document["drivers"].push_back(driver_json(*driver));
    print_json(console, document);
    return Exit::ok;
}

}  // namespace

Action add_list(CLI::App& app) {
    auto options = std::make_shared<ListOptions>();
    app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--drivers", options->drivers,
                 "List what drives devices instead, with the options that a device takes as "
                 "DEVICE?OPTION=VALUE&...");
    app.footer(
        "Devices on a bus are named by their port, which stays when they are plugged in again. "
        "Exit\ncode 3 when a bus cannot be read.\n"
        "Examples:\n"
        "  reef list\n"
        "  reef list --drivers\n"
        "  reef list --json | jq -r '.devices[].device'");
    return [options](Console& console) -> Result<Exit> {
        return options->drivers ? list_drivers(options->json, console)
                                : list_devices(options->json, console);
    };
}

}  // namespace reef::tool
