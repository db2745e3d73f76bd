// What reef debug looks at: a compiled model on a simulated chip, or a stick.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reef/base/npy.h"
#include "reef/edgetpu/debugger.h"
#include "reef/edgetpu/package.h"

namespace reef::tool::debug {

struct TargetOptions {
    std::string file;  ///< may be empty for sticks
    std::string device = "edgetpu:sim";
    std::vector<std::string> inputs;  ///< as --input of reef run
    std::uint64_t seed = 1;           ///< of random inputs, without --input
    std::string firmware;
};

/// A layer of the executable that computes.
struct LayerText {
    std::string name;
    std::string shape;  ///< "1x256 uint8"
};

struct Target {
    std::unique_ptr<edgetpu::Debugger> debugger;
    std::vector<LayerText> inputs, outputs;
    std::vector<Array> output_arrays;  ///< shapes and types, no bytes
    std::string device;
    bool simulated = false;  ///< everything in it can be seen
    std::string file;
};

/// Errors: bad_argument for devices that cannot be debugged; bad_input for a model that is not
/// compiled; unsupported for several chip operators, or one whose inputs the CPU computes; those of
/// the device.
[[nodiscard]] Result<Target> open_target(const TargetOptions& options);

}  // namespace reef::tool::debug
