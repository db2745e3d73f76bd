// What reef debug looks at: a compiled model on a simulated chip, or hardware.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reef/chip/debugger.h"
#include "reef/chip/disassembler.h"

namespace reef::tool::debug {

struct TargetOptions {
    std::string file;                 ///< may be empty for hardware
    std::string device;               ///< empty: standard_device()
    std::vector<std::string> inputs;  ///< as --input of reef run
    std::uint64_t seed = 1;           ///< of random inputs, without --input
    std::string firmware;
    std::optional<std::size_t> op{};  ///< as chip::DebugRequest::op
};

struct Target : chip::DebugTarget {
    const chip::Disassembler* disassembler = nullptr;
    std::string device;
    std::string file;
};

/// The first simulated device that can be debugged.
[[nodiscard]] std::string standard_device();
/// "a, a:NAME, b or c": the devices that can be debugged.
[[nodiscard]] std::string device_forms();

/// Errors: bad_argument for devices that cannot be debugged and what they do not take; bad_input
/// for a model that is not compiled; unsupported by name; those of the device.
[[nodiscard]] Result<Target> open_target(const TargetOptions& options);

}  // namespace reef::tool::debug
