// Opening a model on a device, as the verbs that run models do it.
#pragma once

#include <string>
#include <vector>

#include "inputs/tensor_input.h"
#include "outputs/json_output.h"
#include "reef/runtime/session.h"

namespace CLI {
class App;
}

namespace reef::tool {

/// Where and how to run, as the command line says it.
struct DeviceOptions {
    std::string device = "cpu";  ///< URIs, with device_separator between them
    std::string kernels = "fast";
    std::string arithmetic = "tflite";
    /// Compiled from the model that runs: `arithmetic` is that of what this has on the chip.
    std::string placed_as{};
    int threads = 1;
    bool require_npu = false;
    bool standard_clock = false;
    std::string firmware{};
    bool strict = false;
};
inline constexpr char device_separator = '\n';

/// As results name the devices: with commas.
[[nodiscard]] std::string device_text(const DeviceOptions& options);

/// Declares --device, --kernels, --arithmetic, --placed-as, --threads, --require-npu,
/// --standard-clock and --firmware.
void add_device_options(CLI::App& app, DeviceOptions& options);

/// The family of the first device.
[[nodiscard]] std::string family_of_device(const DeviceOptions& options);
/// "tflite", and the families of chips whose arithmetic the CPU can compute in.
[[nodiscard]] std::vector<std::string> arithmetics();
/// What --arithmetic says for the CPU; a chip has its own, of its family's name.
[[nodiscard]] std::string arithmetic_of(const DeviceOptions& options);
/// The library's options; --standard-clock, --firmware and --strict are options of the devices.
/// Precondition: kernels is "fast" or "reference", arithmetic one of arithmetics().
[[nodiscard]] runtime::SessionOptions session_options(const DeviceOptions& options);

struct OpenModel {
    model::Model model;
    runtime::Session session;
    double seconds = 0;  ///< that reading and preparing took
};

/// What a session keeps behind a run.
enum class Kept : std::uint8_t { ends, all_tensors };

/// The path is the place of every error but those about the device. Errors about options of devices
/// speak of the flags; those of DeviceOptions::placed_as, that it belongs to an arithmetic, is
/// compiled for its chip and of this model.
[[nodiscard]] Result<OpenModel> open_model(const std::string& path, const DeviceOptions& device,
                                           Kept kept = Kept::ends);

/// A model that is there already; its name is the place of errors.
[[nodiscard]] Result<OpenModel> open_model(model::Model model, const std::string& name,
                                           runtime::SessionOptions options);

/// Precondition: one entry per input, each as long as its tensor.
void set_inputs(runtime::Session& session, const InputBytes& inputs);

/// Seconds that one run takes; inputs must have been set.
[[nodiscard]] Result<double> timed_run(runtime::Session& session,
                                       graph::RunObserver* observer = nullptr);

/// How many operators each kernel of each device runs: "cpu: 14 conv_2d fast AVX2, ...".
[[nodiscard]] std::string placement_summary(const runtime::Session& session);
void print_placements(Console& console, const runtime::Session& session);
[[nodiscard]] Json placements_json(const runtime::Session& session);

/// Whether any of the devices is of a backend that has it.
[[nodiscard]] bool any_device_has(const DeviceOptions& options, runtime::Capability capability);

/// "parameters loaded once, evicted 0 times, ..."; empty when no driver runs a chip.
[[nodiscard]] std::string chip_summary(const runtime::Session& session);
/// Counts of the driver; null when it runs no chip.
[[nodiscard]] Json chip_json(const runtime::Session& session);

}  // namespace reef::tool
