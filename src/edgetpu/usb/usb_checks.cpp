#include "edgetpu/usb/usb_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "edgetpu/usb/link.h"
#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {
namespace {

namespace fs = std::filesystem;
using State = Check::State;

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

constexpr std::string_view container_options =
    "-v /dev/bus/usb:/dev/bus/usb and --device-cgroup-rule='c 189:* rmw'";

bool is_denied(const std::error_code& error) {
    return error == std::errc::permission_denied || error == std::errc::operation_not_permitted;
}

bool in_container(const fs::path& root) {
    std::error_code error;
    return fs::exists(root / ".dockerenv", error) || fs::exists(root / "run/.containerenv", error);
}

Check check_libusb(const Result<std::shared_ptr<Bus>>& bus) {
    Check check{.name = "libusb", .state = State::good, .what = "starts", .fix = {}};
    if (bus) return check;
    check.state = State::bad;
    check.what = bus.error().what;
    check.fix = bus.error().hint;
    return check;
}

Check check_list(Bus& bus, std::vector<DeviceInfo>& devices) {
    Check check{.name = "sticks", .state = State::good, .what = {}, .fix = {}};
    auto listed = bus.list();
    if (!listed) {
        check.state = State::bad;
        check.what = listed.error().what;
        check.fix =
            listed.error().fault == Fault::no_bus
                ? std::string(bus_hint)
                : fmt::format("mount /dev/bus/usb; start a container with {}", container_options);
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
    if (!in_container(root)) return check;
    check.what = "this is a container";
    std::error_code error;
    if (fs::exists(root / "dev/bus/usb", error)) {
        check.state = State::warning;
        check.fix =
            "mount all of /dev/bus/usb, not one node: the stick changes its number when "
            "its firmware starts";
        return check;
    }
    check.state = State::bad;
    check.what += error ? " whose /dev/bus/usb may not be looked into" : " without /dev/bus/usb";
    check.fix = fmt::format("start it with {}", container_options);
    return check;
}

bool any_may_be_opened(const std::vector<DeviceInfo>& devices, const CheckedSystem& system) {
    return std::ranges::any_of(devices, [&](const DeviceInfo& device) {
        return system.open_node(system.root / device_node(device).substr(1)) == 0;
    });
}

Check check_rule(const std::vector<DeviceInfo>& devices, const CheckedSystem& system) {
    Check check{.name = "udev rule", .state = State::good, .what = {}, .fix = {}};
    for (const char* folder :
         {"etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"}) {
        std::error_code error;
        for (fs::directory_iterator entry(system.root / folder, error), end; !error && entry != end;
             entry.increment(error)) {
            if (entry->path().extension() != ".rules") continue;
            const std::string text = contents(entry->path());
            if (text.contains("1a6e") && text.contains("9302")) {
                check.what = entry->path().string();
                return check;
            }
        }
    }
    check.what = "no rule for 1a6e:089a and 18d1:9302";
    check.fix =
        "reef doctor --udev-rule | sudo tee /etc/udev/rules.d/60-reef.rules; "
        "sudo udevadm control --reload; then plug the stick in again";
    if (system.superuser || devices.empty()) {
        check.state = State::warning;
    } else if (any_may_be_opened(devices, system)) {
        check.state = State::note;
        check.what += "; the stick may be opened without";
    } else {
        check.state = State::bad;
    }
    return check;
}

Check check_firmware(bool needed, bool simulated) {
    Check check{.name = "firmware", .state = State::good, .what = {}, .fix = {}};
    const auto firmware = find_firmware();
    if (firmware) {
        check.what = firmware->origin;
        if (!firmware->known) {
            check.state = State::warning;
            check.what += ", not the single-endpoint firmware that Reef knows";
            check.fix = known_firmware_hint;
        }
        return check;
    }
    check.state = needed ? State::bad : State::warning;
    const Error& error = firmware.error();
    check.what = error.place.empty() ? error.what : fmt::format("{}: {}", error.place, error.what);
    check.fix = error.hint;
    if (simulated) check.fix += simulated_firmware_hint;
    return check;
}

Check check_permission(const DeviceInfo& device, const CheckedSystem& system,
                       const std::string& name) {
    const std::string node = device_node(device);
    Check check{.name = name + "permission", .state = State::good, .what = node, .fix = {}};
    const fs::path path = system.root / node.substr(1);
    const int error = system.open_node(path);
    if (error == 0) return check;
    check.state = State::bad;
    std::error_code looked;
    static_cast<void>(fs::status(path, looked));
    if (error == ENOENT) {
        check.what += " does not exist";
        check.fix = fmt::format("mount /dev/bus/usb from the host; a container is started with {}",
                                container_options);
    } else if (error == EACCES && is_denied(looked)) {
        check.what += fmt::format(" cannot be reached: {} may not be entered",
                                  fs::path(node).parent_path().string());
        check.fix =
            fmt::format("sudo chmod a+rx /dev/bus/usb {}", fs::path(node).parent_path().string());
    } else if (error == EACCES) {
        check.what += " may not be opened";
        check.fix = "install the udev rule (reef doctor --udev-rule) and join the group plugdev";
    } else if (error == EPERM) {
        check.what += " may not be opened, whatever its mode says: the container's device rules";
        check.fix = fmt::format("start the container with {}", container_options);
    } else {
        check.what += fmt::format(" does not open: {}", std::generic_category().message(error));
        check.fix = "plug the stick in again";
    }
    return check;
}

Check check_speed(const DeviceInfo& device, const std::string& name) {
    Check check{.name = name + "speed",
                .state = State::good,
                .what = std::string(to_string(device.speed)),
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

/// Whether a process has the node open; nothing when it may not be looked into.
std::optional<bool> holds(const fs::path& process, const std::string& node) {
    std::error_code error;
    for (fs::directory_iterator file(process / "fd", error), end; !error && file != end;
         file.increment(error)) {
        std::error_code gone;
        if (fs::read_symlink(file->path(), gone) == node) return true;
    }
    // A process may have ended in between.
    if (is_denied(error)) return std::nullopt;
    return false;
}

Check check_owner(const DeviceInfo& device, const CheckedSystem& system, const std::string& name) {
    Check check{.name = name + "owner", .state = State::good, .what = "nobody", .fix = {}};
    const std::string node = device_node(device);
    std::size_t hidden = 0;
    std::error_code error;
    for (fs::directory_iterator process(system.root / "proc", error), end; !error && process != end;
         process.increment(error)) {
        const std::string id = process->path().filename().string();
        if (!std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; })) continue;
        const auto held = holds(process->path(), node);
        if (!held) ++hidden;
        if (!held || !*held) continue;
        std::string command = contents(process->path() / "comm");
        while (command.ends_with('\n')) command.pop_back();
        check.state = State::bad;
        check.what = fmt::format("{} (process {})", command, id);
        check.fix = "end that program: a stick has one user at a time";
        return check;
    }
    if (!error && hidden == 0 && !in_container(system.root)) return check;
    check.state = State::unknown;
    if (error) {
        check.what = fmt::format("/proc cannot be read: {}", error.message());
    } else if (hidden != 0) {
        check.what =
            fmt::format("none of your processes; {} of others may not be looked into", hidden);
    } else {
        check.what = "no process of this container; those of the host are not seen from here";
    }
    check.fix = in_container(system.root) ? "sudo reef doctor on the host" : "sudo reef doctor";
    return check;
}

Check check_usbfs(const fs::path& root) {
    Check check{.name = "usbfs memory", .state = State::good, .what = {}, .fix = {}};
    const std::string file = "/sys/module/usbcore/parameters/usbfs_memory_mb";
    const std::string text = contents(root / file.substr(1));
    unsigned limit = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), limit).ec != std::errc()) {
        check.state = State::unknown;
        check.what = fmt::format("{} cannot be read", file);
        check.fix = "in a container, look at it on the host: 16 or more is enough, 0 no limit";
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

CheckedSystem::CheckedSystem()
    : open_node([](const fs::path& node) {
          const int number = ::open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
          if (number < 0) return errno;
          ::close(number);
          return 0;
      }),
      superuser(::geteuid() == 0) {}

std::vector<Check> check_usb(const Result<std::shared_ptr<Bus>>& bus, const CheckedSystem& system) {
    std::vector<Check> checks = {check_libusb(bus)};
    std::vector<DeviceInfo> devices;
    if (bus) checks.push_back(check_list(**bus, devices));
    checks.push_back(check_container(system.root));
    checks.push_back(check_rule(devices, system));
    checks.push_back(check_usbfs(system.root));
    checks.push_back(check_firmware(
        std::ranges::any_of(devices,
                            [](const DeviceInfo& device) { return device.vendor != chip_vendor; }),
        std::ranges::any_of(devices, &DeviceInfo::simulated)));
    for (const DeviceInfo& device : devices) {
        const std::string name = fmt::format("stick {}: ", device.port);
        checks.push_back({.name = name + "state",
                          .state = State::good,
                          .what = fmt::format("{:04x}:{:04x}, {}", device.vendor, device.product,
                                              state_of(device)),
                          .fix = {}});
        if (device.simulated) {
            checks.push_back({.name = name + "simulated",
                              .state = State::note,
                              .what = "no hardware: libreef-usb stands in for libusb",
                              .fix = "for a real stick, take it out of LD_PRELOAD or "
                                     "LD_LIBRARY_PATH"});
        } else {
            checks.push_back(check_permission(device, system, name));
            checks.push_back(check_owner(device, system, name));
        }
        checks.push_back(check_speed(device, name));
        checks.push_back(check_hub(device, name));
    }
    return checks;
}

}  // namespace reef::edgetpu::usb
