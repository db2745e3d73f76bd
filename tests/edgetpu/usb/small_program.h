// A compiled program made by the tests: parameters to cache, one input, two outputs.
#pragma once

#include <memory>
#include <string>

#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::edgetpu::usb::test {

inline constexpr int small_output = 3000;  ///< bytes of the second output
/// Packages with different `variant`s differ in their parameters and token.
[[nodiscard]] Package small_package(std::uint64_t token = 7, std::uint8_t variant = 0,
                                    int second_output = small_output);
[[nodiscard]] std::shared_ptr<const Program> small_program(std::uint64_t token = 7,
                                                           std::uint8_t variant = 0);

/// A core that knows variants 0 to 3 of both.
[[nodiscard]] std::unique_ptr<ChipCore> small_core(int second_output = small_output);

/// One inference; true when the outputs are consecutive bytes of the null core's stream.
[[nodiscard]] Status run_small(Device& device, const std::shared_ptr<const Program>& program);

/// Its halves.
[[nodiscard]] Status start_small(Device& device, const std::shared_ptr<const Program>& program);
[[nodiscard]] Status finish_small(Device& device);

/// A file that a simulated boot loader takes.
[[nodiscard]] std::vector<std::byte> any_firmware();

}  // namespace reef::edgetpu::usb::test
