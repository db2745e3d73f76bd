#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "reef/base/file.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {
namespace {

// The single-endpoint firmware (apex_latest_single_ep.bin), known by its size, its SHA-256 and two
// sums that are cheap to move along a file: of its bytes, and of its bytes times their distance
// from the end, both modulo 2^32.
constexpr std::size_t known_size = 10783;
constexpr std::uint32_t known_sum = 0x138bf2, known_weighted = 0x9ae990a7;
constexpr std::string_view known_sha256 =
    "3b07311b174b81fd14fd2c887f40d646c0ebf2f140cc5ee5cf8befa0f3e3dc7f";
constexpr std::size_t most_bytes = 65536;

constexpr std::string_view file_name = "apex_latest_single_ep.bin";
constexpr std::string_view libraries[] = {
    "/usr/lib/x86_64-linux-gnu/libedgetpu.so.1", "/usr/lib/aarch64-linux-gnu/libedgetpu.so.1",
    "/usr/lib/arm-linux-gnueabihf/libedgetpu.so.1", "/usr/local/lib/libedgetpu.so.1",
    "/usr/lib/libedgetpu.so.1"};

std::vector<std::string> file_places() {
    std::vector<std::string> places;
    const auto in = [&](const std::string& folder) {
        places.push_back(fmt::format("{}/{}", folder, file_name));
    };
    if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != '\0') {
        in(fmt::format("{}/reef", data));
    } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
        in(fmt::format("{}/.local/share/reef", home));
    }
    in("/usr/local/share/reef");
    in("/usr/share/reef");
    in("/lib/firmware/google");
    return places;
}

std::optional<Firmware> inside(Bytes file, const std::string& path) {
    const auto at = find_known_firmware(file);
    if (!at) return std::nullopt;
    const Bytes part = file.subspan(*at, known_size);
    return Firmware{.bytes = {part.begin(), part.end()},
                    .origin = fmt::format("{} at byte {}", path, *at),
                    .known = true};
}

/// A firmware, or anything larger that holds the known one: a vendor's library of any system.
Result<Firmware> load(const std::string& path) {
    const auto file = REEF_TRY(read_file(path));
    const Bytes view = file.view();
    if (view.size() > most_bytes) {
        if (auto found = inside(view, path)) return std::move(*found);
        return fail(Cause::bad_input,
                    fmt::format("{} bytes are no firmware (1 to {}), and the known one is not "
                                "inside",
                                view.size(), most_bytes),
                    path, std::string(known_firmware_hint));
    }
    if (view.empty()) return fail(Cause::bad_input, "an empty file is no firmware", path);
    if (view.size() != known_size) {
        if (auto found = inside(view, path)) return std::move(*found);
    }
    return Firmware{.bytes = {view.begin(), view.end()},
                    .origin = path,
                    .known = to_hex(sha256(view)) == known_sha256};
}

std::optional<Firmware> from_library(const std::string& path) {
    const auto file = read_file(path);
    if (!file) return std::nullopt;
    return inside(file->view(), path);
}

}  // namespace

std::optional<std::size_t> find_known_firmware(Bytes file) {
    if (file.size() < known_size) return std::nullopt;
    std::uint32_t sum = 0, weighted = 0;
    for (std::size_t i = 0; i < known_size; ++i) {
        sum += static_cast<std::uint32_t>(file[i]);
        weighted += sum;
    }
    for (std::size_t at = 0;; ++at) {
        if (sum == known_sum && weighted == known_weighted &&
            to_hex(sha256(file.subspan(at, known_size))) == known_sha256) {
            return at;
        }
        if (at + known_size >= file.size()) return std::nullopt;
        const auto leaving = static_cast<std::uint32_t>(file[at]);
        sum += static_cast<std::uint32_t>(file[at + known_size]) - leaving;
        weighted += sum - static_cast<std::uint32_t>(known_size) * leaving;
    }
}

Result<Firmware> find_firmware(const std::string& path) {
    if (!path.empty()) return load(path);
    if (const char* named = std::getenv("REEF_EDGETPU_FIRMWARE");
        named != nullptr && *named != '\0') {
        return in_place(load(named), "REEF_EDGETPU_FIRMWARE");
    }
    std::string tried;
    for (const std::string& place : file_places()) {
        std::error_code error;
        if (std::filesystem::exists(place, error)) return load(place);
        tried += fmt::format("{}{}{}", tried.empty() ? "" : ", ", place,
                             error ? " (" + error.message() + ")" : "");
    }
    for (const std::string_view library : libraries) {
        if (auto found = from_library(std::string(library))) return std::move(*found);
    }
    return fail(
        Cause::not_found,
        fmt::format("no firmware for the Edge TPU: neither {} nor inside libedgetpu.so.1", tried),
        {},
        "install Google's libedgetpu1-std, or name the file with --firmware or "
        "REEF_EDGETPU_FIRMWARE");
}

}  // namespace reef::edgetpu::usb
