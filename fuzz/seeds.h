// Starting inputs of the fuzz targets, made by the library's own writers.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reef/base/result.h"

namespace reef::fuzz {

/// File name and contents.
using Seeds = std::vector<std::pair<std::string, std::vector<std::byte>>>;

[[nodiscard]] Result<Seeds> bmodel_seeds();
[[nodiscard]] Result<Seeds> cpu_operator_seeds();
[[nodiscard]] Result<Seeds> debug_command_seeds();
[[nodiscard]] Result<Seeds> device_uri_seeds();
[[nodiscard]] Result<Seeds> edgetpu_asm_seeds();
[[nodiscard]] Result<Seeds> edgetpu_compiler_seeds();
[[nodiscard]] Result<Seeds> edgetpu_isa_seeds();
[[nodiscard]] Result<Seeds> edgetpu_package_seeds();
[[nodiscard]] Result<Seeds> edgetpu_shared_seeds();
[[nodiscard]] Result<Seeds> edgetpu_stick_seeds();
[[nodiscard]] Result<Seeds> edgetpu_usb_seeds();
[[nodiscard]] Result<Seeds> edgetpu_simulator_seeds();
[[nodiscard]] Result<Seeds> edgetpu_weights_seeds();
/// For the simulator: the programs of the compiled models in a folder of the reference data.
[[nodiscard]] Result<Seeds> edgetpu_vendor_seeds(const std::filesystem::path& folder);
[[nodiscard]] Result<Seeds> executor_seeds();
[[nodiscard]] Result<Seeds> image_seeds();
[[nodiscard]] Result<Seeds> npy_seeds();
[[nodiscard]] Result<Seeds> rk3588_artifact_seeds();
[[nodiscard]] Result<Seeds> rk3588_asm_seeds();
[[nodiscard]] Result<Seeds> rk3588_recording_seeds();
[[nodiscard]] Result<Seeds> rk3588_simulator_seeds();
[[nodiscard]] Result<Seeds> rk3588_words_seeds();
[[nodiscard]] Result<Seeds> sophgo_final_seeds();
[[nodiscard]] Result<Seeds> tflite_seeds();

}  // namespace reef::fuzz
