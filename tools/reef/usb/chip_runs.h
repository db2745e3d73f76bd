// Runs of a compiled model's chip part alone, for recording and replaying USB traffic.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reef/edgetpu/device/operator_inputs.h"
#include "reef/edgetpu/usb/device.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace reef::tool {

struct ChipRunOptions {
    std::vector<std::string> inputs;  ///< as --input of reef run
    std::uint64_t seed = 1;           ///< of random inputs, without --input
    unsigned runs = 2;
    bool standard_clock = false;
    std::string firmware;
};
void add_chip_run_options(CLI::App& app, ChipRunOptions& options);

/// Refuses "-": a recording is two files, FILE and FILE.bin.
[[nodiscard]] CLI::Validator recording_name();

/// A compiled model, ready to run its one chip operator.
struct ChipModel {
    std::vector<edgetpu::Executable> executables;
    std::shared_ptr<const edgetpu::usb::Program> program;
    edgetpu::OperatorTensors tensors;
};
/// What the CPU computes before the operator is computed. Errors: bad_input for a model that is not
/// compiled; unsupported when there are several chip operators.
[[nodiscard]] Result<ChipModel> load_chip_model(const std::string& path,
                                                const ChipRunOptions& options);

/// The bus that "edgetpu:usb", "edgetpu:usb:PORT", "edgetpu:sim" (a simulated stick) or
/// "edgetpu:null" (one that computes nothing and answers at once) names; sets `port`.
[[nodiscard]] Result<std::shared_ptr<edgetpu::usb::Bus>> bus_named(const std::string& device,
                                                                   const ChipModel& model,
                                                                   std::string& port);

/// Opens the device, which starts the chip, and closes it.
[[nodiscard]] Status start_and_stop(const std::shared_ptr<edgetpu::usb::Bus>& bus,
                                    const ChipRunOptions& options);
/// Opens the device, runs and closes. State goes on from run to run.
[[nodiscard]] Status run_on_chip(const std::shared_ptr<edgetpu::usb::Bus>& bus,
                                 const std::string& port, ChipModel& model,
                                 const ChipRunOptions& options);

}  // namespace reef::tool
