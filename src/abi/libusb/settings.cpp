#include "abi/libusb/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "reef/edgetpu/package.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/model/tflite.h"

namespace reef::abi::libusb {
namespace {

using edgetpu::usb::FaultAt;
using edgetpu::usb::InjectedFault;
using edgetpu::usb::Milliseconds;
using edgetpu::usb::Speed;
using edgetpu::usb::StickOptions;

constexpr std::size_t most_sticks = 16;
constexpr std::size_t longest_socket = 100;  ///< sockaddr_un has 108

std::unexpected<Error> wrong(std::string_view variable, std::string_view word,
                             std::string_view expected) {
    return fail(Cause::bad_argument, fmt::format("{}: '{}' is not {}", variable, word, expected));
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    if (!text.empty() && text.back() == separator) words.emplace_back();
    return words;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// "2-1.4": a bus and one to seven ports, none of them 0.
bool is_port(std::string_view text) {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return false;
    std::vector<std::string> parts = split(std::string(text.substr(dash + 1)), '.');
    if (parts.empty() || parts.size() > 7) return false;
    parts.emplace_back(text.substr(0, dash));
    return std::ranges::all_of(parts, [](const std::string& part) {
        const auto value = number(part);
        return value && *value >= 1 && *value <= 255;
    });
}

Result<Speed> speed_named(const std::string& name) {
    if (name == "full") return Speed::full;
    if (name == "high") return Speed::high;
    if (name == "super") return Speed::super;
    if (name == "super_plus") return Speed::super_plus;
    return wrong("REEF_USB_SPEED", name, "full, high, super or super_plus");
}

Result<bool> firmware_named(const std::string& name) {
    if (name == "boot") return false;
    if (name == "ready") return true;
    return wrong("REEF_USB_STATE", name, "boot or ready");
}

struct Fault {
    std::string port;  ///< empty: of every stick
    FaultAt at;
};

/// "[PORT:]FAULT@TRANSACTION[+MILLISECONDS]"
Result<Fault> fault_named(const std::string& word) {
    const auto refuse = [&] {
        return wrong("REEF_USB_FAULTS", word,
                     "of the form [PORT:]FAULT@TRANSACTION[+MS], where FAULT is stall, time_out, "
                     "short_read, long_read, unplug, wrong_event, firmware_status or "
                     "stuck_register, and MS goes with unplug");
    };
    Fault fault;
    std::string rest = word;
    if (const std::size_t colon = rest.find(':'); colon != std::string::npos) {
        fault.port = rest.substr(0, colon);
        rest.erase(0, colon + 1);
        if (!is_port(fault.port)) return refuse();
    }
    const std::size_t at = rest.find('@');
    if (at == std::string::npos) return refuse();
    const auto* kind =
        std::ranges::find(edgetpu::usb::injected_faults, rest.substr(0, at),
                          [](InjectedFault each) { return std::string(to_string(each)); });
    if (kind == std::end(edgetpu::usb::injected_faults)) return refuse();
    fault.at.fault = *kind;
    const std::size_t plus = rest.find('+', at);
    const auto transaction = number(
        std::string_view(rest).substr(at + 1, plus == std::string::npos ? plus : plus - at - 1));
    if (!transaction) return refuse();
    fault.at.transaction = *transaction;
    if (plus != std::string::npos) {
        const auto back = number(std::string_view(rest).substr(plus + 1));
        if (!back || *kind != InjectedFault::unplug) return refuse();
        fault.at.back_after = Milliseconds(*back);
    }
    return fault;
}

/// The word of the stick; the last one holds for the sticks behind it.
const std::string* word_for(const std::vector<std::string>& words, std::size_t stick) {
    if (words.empty()) return nullptr;
    return &words[std::min(stick, words.size() - 1)];
}

Result<std::size_t> count_of(const std::string& count, const std::vector<std::string>& ports) {
    if (count.empty()) return ports.empty() ? 1 : ports.size();
    const auto value = number(count);
    if (!value || *value > most_sticks) {
        return wrong("REEF_USB_STICKS", count, fmt::format("a number up to {}", most_sticks));
    }
    if (!ports.empty() && *value != ports.size()) {
        return wrong("REEF_USB_STICKS", count,
                     fmt::format("the number of ports in REEF_USB_PORTS, {}", ports.size()));
    }
    return *value;
}

Status add_faults(const std::string& text, std::vector<StickOptions>& sticks) {
    for (const std::string& word : split(text, ',')) {
        const Fault fault = REEF_TRY(fault_named(word));
        bool found = false;
        for (StickOptions& stick : sticks) {
            if (!fault.port.empty() && stick.port != fault.port) continue;
            stick.faults.push_back(fault.at);
            found = true;
        }
        if (!found) return wrong("REEF_USB_FAULTS", word, "at a port with a stick");
    }
    return {};
}

}  // namespace

Result<Settings> read_settings(const Environment& environment) {
    Settings settings;
    const auto ports = split(environment("REEF_USB_PORTS"), ',');
    const auto speeds = split(environment("REEF_USB_SPEED"), ',');
    const auto states = split(environment("REEF_USB_STATE"), ',');
    const std::size_t count = REEF_TRY(count_of(environment("REEF_USB_STICKS"), ports));
    std::set<std::string> taken;
    for (std::size_t i = 0; i < count; ++i) {
        StickOptions stick;
        if (const auto* speed = word_for(speeds, i)) stick.speed = REEF_TRY(speed_named(*speed));
        if (const auto* state = word_for(states, i)) {
            stick.has_firmware = REEF_TRY(firmware_named(*state));
        }
        stick.port = fmt::format("{}-{}", stick.speed >= Speed::super ? 2 : 1, i + 1);
        if (!ports.empty()) stick.port = ports[i];
        if (!is_port(stick.port)) {
            return wrong("REEF_USB_PORTS", stick.port, "a bus and its ports, like 2-1.4");
        }
        if (!taken.insert(stick.port).second) {
            return wrong("REEF_USB_PORTS", stick.port, "a port of its own");
        }
        settings.sticks.push_back(std::move(stick));
    }
    REEF_CHECK(add_faults(environment("REEF_USB_FAULTS"), settings.sticks));
    const std::string core = environment("REEF_USB_CORE");
    if (core == "null") {
        settings.core = CoreKind::null;
    } else if (!core.empty() && core != "simulator") {
        return wrong("REEF_USB_CORE", core, "simulator or null");
    }
    settings.models = split(environment("REEF_USB_MODELS"), ':');
    settings.record = environment("REEF_USB_RECORD");
    const std::string hotplug = environment("REEF_USB_HOTPLUG");
    if (!hotplug.empty() && hotplug != "yes" && hotplug != "no") {
        return wrong("REEF_USB_HOTPLUG", hotplug, "yes or no");
    }
    settings.hotplug = hotplug != "no";
    settings.shared = environment("REEF_USB_SHARED");
    if (settings.shared.size() > longest_socket) {
        return wrong("REEF_USB_SHARED", settings.shared,
                     fmt::format("a path of up to {} bytes", longest_socket));
    }
    return settings;
}

Result<std::unique_ptr<edgetpu::usb::ChipCore>> make_core(const Settings& settings) {
    if (settings.core == CoreKind::simulator) {
        return std::make_unique<edgetpu::usb::SimulatorCore>();
    }
    std::vector<edgetpu::Executable> executables;
    for (const std::string& path : settings.models) {
        const auto model = REEF_TRY(model::load_tflite(path));
        const auto operators = REEF_TRY(edgetpu::packages_of(model));
        for (const auto& operation : operators) {
            const auto& all = operation.package.executables;
            executables.insert(executables.end(), all.begin(), all.end());
        }
    }
    return REEF_TRY(edgetpu::usb::NullCore::of(executables));
}

}  // namespace reef::abi::libusb
