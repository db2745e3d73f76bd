// fuzz_seeds FOLDER: writes FOLDER/TARGET/NAME for every seed of every target.
#include "seeds.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "reef/base/file.h"

namespace reef::fuzz {
namespace {

struct Target {
    const char* name;
    Result<Seeds> (*seeds)();
};

constexpr Target targets[] = {
    {"debug_command", debug_command_seeds},
    {"edgetpu_asm", edgetpu_asm_seeds},
    {"edgetpu_isa", edgetpu_isa_seeds},
    {"edgetpu_package", edgetpu_package_seeds},
    {"edgetpu_usb", edgetpu_usb_seeds},
    {"edgetpu_simulator", edgetpu_simulator_seeds},
    {"executor", executor_seeds},
    {"image", image_seeds},
    {"npy", npy_seeds},
    {"tflite", tflite_seeds},
};

Status write_seeds(const std::filesystem::path& folder) {
    for (const Target& target : targets) {
        const Seeds seeds = REEF_TRY(in_place(target.seeds(), target.name));
        const std::filesystem::path place = folder / target.name;
        std::error_code error;
        std::filesystem::create_directories(place, error);
        if (error) return fail(Cause::io_failed, error.message(), place.string());
        for (const auto& [name, contents] : seeds) {
            REEF_CHECK(write_file((place / name).string(), contents));
        }
        fmt::print("{}: {} seeds\n", place.string(), seeds.size());
    }
    return {};
}

}  // namespace
}  // namespace reef::fuzz

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    const auto status = reef::fuzz::write_seeds(argv[1]);
    if (status) return 0;
    fmt::print(stderr, "fuzz_seeds: {}\n", status.error().message());
    return 1;
}
