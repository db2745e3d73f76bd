// fuzz_seeds FOLDER [MODELS]: writes FOLDER/TARGET/NAME for every seed of every target; MODELS is a
// folder of compiled models whose programs are seeds, too.
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
    {"bmodel", bmodel_seeds},
    {"cpu_operator", cpu_operator_seeds},
    {"debug_command", debug_command_seeds},
    {"device_uri", device_uri_seeds},
    {"edgetpu_asm", edgetpu_asm_seeds},
    {"edgetpu_compiler", edgetpu_compiler_seeds},
    {"edgetpu_isa", edgetpu_isa_seeds},
    {"edgetpu_package", edgetpu_package_seeds},
    {"edgetpu_program", edgetpu_isa_seeds},
    {"edgetpu_shared", edgetpu_shared_seeds},
    {"edgetpu_stick", edgetpu_stick_seeds},
    {"edgetpu_usb", edgetpu_usb_seeds},
    {"edgetpu_simulator", edgetpu_simulator_seeds},
    {"edgetpu_weights", edgetpu_weights_seeds},
    {"executor", executor_seeds},
    {"image", image_seeds},
    {"npy", npy_seeds},
    {"rk3588_artifact", rk3588_artifact_seeds},
    {"rk3588_asm", rk3588_asm_seeds},
    {"rk3588_recording", rk3588_recording_seeds},
    {"rk3588_simulator", rk3588_simulator_seeds},
    {"rk3588_words", rk3588_words_seeds},
    {"sophgo_final", sophgo_final_seeds},
    {"tflite", tflite_seeds},
};

Status write_seeds(const Seeds& seeds, const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(Cause::io_failed, error.message(), folder.string());
    for (const auto& [name, contents] : seeds)
        REEF_CHECK(write_file((folder / name).string(), contents));
    fmt::print("{}: {} seeds\n", folder.string(), seeds.size());
    return {};
}

Status write_all(const std::filesystem::path& folder, const char* models) {
    for (const Target& target : targets)
        REEF_CHECK(
            write_seeds(REEF_TRY(in_place(target.seeds(), target.name)), folder / target.name));
    if (models == nullptr) return {};
    return write_seeds(REEF_TRY(edgetpu_vendor_seeds(models)), folder / "edgetpu_simulator");
}

}  // namespace
}  // namespace reef::fuzz

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        fmt::print(stderr, "usage: fuzz_seeds FOLDER [FOLDER_OF_COMPILED_MODELS]\n");
        return 2;
    }
    const auto status = reef::fuzz::write_all(argv[1], argc == 3 ? argv[2] : nullptr);
    if (status) return 0;
    fmt::print(stderr, "fuzz_seeds: {}\n", status.error().message());
    return 1;
}
