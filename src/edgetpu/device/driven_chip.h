// What each backend's devices are made of, by their URIs and options.
#pragma once

#include <string_view>

#include "driven_device.h"
#include "reef/base/result.h"
#include "reef/edgetpu/simulator.h"
#include "reef/runtime/options.h"
#include "reef/runtime/uri.h"

namespace reef::edgetpu {

namespace backend {
inline constexpr std::string_view simulated = "sim";
inline constexpr std::string_view on_usb = "usb";
inline constexpr std::string_view replayed = "replay";
inline constexpr std::string_view null = "null";
}  // namespace backend

namespace option {
inline constexpr const char* clock = "clock";
inline constexpr const char* endpoints = "endpoints";
inline constexpr const char* firmware = "firmware";
inline constexpr const char* strict = "strict";
inline constexpr const char* engine = "engine";
inline constexpr const char* random_seed = "random_seed";
inline constexpr const char* most_steps = "most_steps";
inline constexpr const char* most_scalar_instructions = "most_scalar_instructions";
}  // namespace option

namespace choice {
inline constexpr const char* maximum_clock = "maximum";
inline constexpr const char* high_clock = "high";
inline constexpr const char* medium_clock = "medium";
inline constexpr const char* low_clock = "low";
inline constexpr const char* standard_clock = "standard";  ///< the vendor's name of the high one
inline constexpr const char* single_endpoint = "single";
inline constexpr const char* multiple_endpoints = "multiple";
inline constexpr const char* plain_engine = "plain";
}  // namespace choice

/// Precondition: options of the simulated backend.
[[nodiscard]] SimulatorOptions simulator_options(const runtime::OptionValues& options, int threads);

/// A chip behind the driver, not open yet. Precondition: no strict one, which has no driver.
/// Errors: not_found and bad_input of a recording, device_missing without libusb.
[[nodiscard]] Result<DrivenChip> driven_chip(const runtime::DeviceUri& device,
                                             const runtime::OptionValues& options, int threads);

}  // namespace reef::edgetpu
