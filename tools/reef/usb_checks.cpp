#include "usb_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "reef/edgetpu/usb/device.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;
using edgetpu::usb::DeviceInfo;
using edgetpu::usb::Speed;
using State = Check::State;

constexpr std::uint16_t chip_vendor = 0x18d1;

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

Check check_list(edgetpu::usb::Bus& bus, std::vector<DeviceInfo>& devices) {
    Check check{.name = "sticks", .state = State::good, .what = {}, .fix = {}};
    auto listed = bus.list();
    if (!listed) {
        check.state = State::bad;
        check.what = listed.error().what;
        check.fix = "mount /dev/bus/usb; in a container add --device /dev/bus/usb";
        return check;
    }
    devices = std::move(*listed);
    if (devices.empty()) {
        check.state = State::bad;
        check.what = "no Edge TPU (1a6e:089a or 18d1:9302) on USB";
        check.fix = "plug one in; in a virtual machine or container pass both identities through";
        return check;
    }
    check.what = fmt::format("{} found", devices.size());
    return check;
}

Check check_container(const fs::path& root) {
    Check check{.name = "container", .state = State::good, .what = "none", .fix = {}};
    const bool inside = fs::exists(root / ".dockerenv") || fs::exists(root / "run/.containerenv");
    if (!inside) return check;
    check.what = "this is a container";
    if (!fs::exists(root / "dev/bus/usb")) {
        check.state = State::bad;
        check.what += " without /dev/bus/usb";
        check.fix =
            "start it with -v /dev/bus/usb:/dev/bus/usb and "
            "--device-cgroup-rule='c 189:* rmw'";
    } else {
        check.state = State::warning;
        check.fix =
            "mount all of /dev/bus/usb, not one node: the stick changes its number when "
            "its firmware starts";
    }
    return check;
}

Check check_rule(const fs::path& root) {
    Check check{.name = "udev rule", .state = State::good, .what = {}, .fix = {}};
    for (const char* folder :
         {"etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"}) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(root / folder, error)) {
            if (entry.path().extension() != ".rules") continue;
            const std::string text = contents(entry.path());
            if (text.contains("1a6e") && text.contains("9302")) {
                check.what = entry.path().string();
                return check;
            }
        }
    }
    check.state = ::geteuid() == 0 ? State::warning : State::bad;
    check.what = "no rule for 1a6e:089a and 18d1:9302";
    check.fix =
        "reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules; "
        "sudo udevadm control --reload; then plug the stick in again";
    return check;
}

Check check_firmware(bool needed) {
    Check check{.name = "firmware", .state = State::good, .what = {}, .fix = {}};
    const auto firmware = edgetpu::usb::find_firmware();
    if (firmware) {
        check.what = firmware->origin;
        if (!firmware->known) {
            check.state = State::warning;
            check.what += ", not the single-endpoint firmware that Reef knows";
            check.fix = "use apex_latest_single_ep.bin, or the library of libedgetpu1-std";
        }
        return check;
    }
    check.state = needed ? State::bad : State::warning;
    check.what = firmware.error().what;
    check.fix = firmware.error().hint;
    return check;
}

Check check_permission(const DeviceInfo& device, const fs::path& root, const std::string& name) {
    Check check{.name = name + "permission", .state = State::good, .what = {}, .fix = {}};
    const fs::path node = root / device_node(device).substr(1);
    check.what = device_node(device);
    if (::access(node.c_str(), R_OK | W_OK) == 0) return check;
    check.state = State::bad;
    check.what += fs::exists(node) ? " may not be opened" : " does not exist";
    check.fix = fs::exists(node) ? "install the udev rule and join the group plugdev"
                                 : "mount /dev/bus/usb from the host";
    return check;
}

Check check_speed(const DeviceInfo& device, const std::string& name) {
    Check check{.name = name + "speed",
                .state = State::good,
                .what = std::string(edgetpu::usb::to_string(device.speed)),
                .fix = {}};
    // The boot loader itself is a USB 2 device.
    const bool slow = device.speed == Speed::high || device.speed == Speed::full;
    if (slow && device.vendor == chip_vendor) {
        check.state = State::warning;
        check.fix =
            "plug it into a USB 3 port with a USB 3 cable: weights and inputs travel ten "
            "times faster";
    }
    return check;
}

Check check_hub(const DeviceInfo& device, const std::string& name) {
    const auto hubs = std::ranges::count(device.port, '.');
    Check check{
        .name = name + "hub",
        .state = State::good,
        .what = hubs == 0 ? "none" : fmt::format("behind {} hub{}", hubs, hubs == 1 ? "" : "s"),
        .fix = {}};
    if (hubs == 0) return check;
    check.state = State::warning;
    check.fix =
        "use a port of the machine, or a hub with its own supply: the stick draws 900 mA "
        "at its peaks";
    return check;
}

Check check_owner(const DeviceInfo& device, const fs::path& root, const std::string& name) {
    Check check{.name = name + "owner", .state = State::good, .what = "nobody", .fix = {}};
    const std::string node = device_node(device);
    std::error_code error;
    for (const auto& process : fs::directory_iterator(root / "proc", error)) {
        const std::string id = process.path().filename().string();
        if (!std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; })) continue;
        std::error_code denied;
        for (const auto& file : fs::directory_iterator(process.path() / "fd", denied)) {
            std::error_code gone;
            if (fs::read_symlink(file.path(), gone).string() != node) continue;
            std::string command = contents(process.path() / "comm");
            while (command.ends_with('\n')) command.pop_back();
            check.state = State::bad;
            check.what = fmt::format("{} (process {})", command, id);
            check.fix = "end that program: a stick has one user at a time";
            return check;
        }
    }
    return check;
}

Check check_usbfs(const fs::path& root) {
    Check check{.name = "usbfs memory", .state = State::good, .what = {}, .fix = {}};
    const std::string text = contents(root / "sys/module/usbcore/parameters/usbfs_memory_mb");
    unsigned limit = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), limit).ec != std::errc()) {
        check.what = "unknown";
        return check;
    }
    check.what = limit == 0 ? "unlimited" : fmt::format("{} MB", limit);
    constexpr unsigned enough = 16;
    if (limit != 0 && limit < enough) {
        check.state = State::warning;
        check.fix = "echo 16 | sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb";
    }
    return check;
}

}  // namespace

std::string_view to_string(Check::State state) {
    switch (state) {
        case State::good:
            return "good";
        case State::warning:
            return "warning";
        case State::bad:
            return "bad";
    }
    return "unknown";
}

std::string_view udev_rule() {
    return R"(# Coral USB Accelerator: its boot loader and, once its firmware runs, the Edge TPU. Members of plugdev
# and whoever sits at the machine may use it.
SUBSYSTEM=="usb", ATTR{idVendor}=="1a6e", ATTR{idProduct}=="089a", MODE="0660", GROUP="plugdev", TAG+="uaccess"
SUBSYSTEM=="usb", ATTR{idVendor}=="18d1", ATTR{idProduct}=="9302", MODE="0660", GROUP="plugdev", TAG+="uaccess"
)";
}

std::string device_node(const DeviceInfo& device) {
    unsigned bus = 0;
    std::from_chars(device.port.data(), device.port.data() + device.port.size(), bus);
    return fmt::format("/dev/bus/usb/{:03}/{:03}", bus, device.address);
}

std::string state_of(const DeviceInfo& device) {
    return device.vendor == chip_vendor ? "firmware runs" : "boot loader, no firmware yet";
}

std::vector<Check> check_usb(edgetpu::usb::Bus& bus, const fs::path& root) {
    std::vector<Check> checks;
    std::vector<DeviceInfo> devices;
    checks.push_back(check_list(bus, devices));
    checks.push_back(check_container(root));
    checks.push_back(check_rule(root));
    checks.push_back(check_usbfs(root));
    checks.push_back(check_firmware(std::ranges::any_of(
        devices, [](const DeviceInfo& device) { return device.vendor != chip_vendor; })));
    for (const DeviceInfo& device : devices) {
        const std::string name = fmt::format("stick {}: ", device.port);
        checks.push_back({.name = name + "state",
                          .state = State::good,
                          .what = fmt::format("{:04x}:{:04x}, {}", device.vendor, device.product,
                                              state_of(device)),
                          .fix = {}});
        checks.push_back(check_permission(device, root, name));
        checks.push_back(check_speed(device, name));
        checks.push_back(check_hub(device, name));
        checks.push_back(check_owner(device, root, name));
    }
    return checks;
}

}  // namespace reef::tool
