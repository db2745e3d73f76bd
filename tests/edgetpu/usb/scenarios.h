// What the reference recordings of the vendor's driver show, done by Reef's driver.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::edgetpu::usb::test {

/// One of data/edgetpu/usb.
struct Scenario {
    std::string name;
    std::vector<std::string> models;  ///< below data/
    std::vector<std::size_t> runs;    ///< indices of models
    bool boots = false;
    Performance performance = Performance::max;
    Speed speed = Speed::super;
};
[[nodiscard]] const std::vector<Scenario>& scenarios();
/// As a test's name may be: letters, digits and underscores.
[[nodiscard]] std::string test_name(const Scenario& scenario);
void PrintTo(const Scenario& scenario, std::ostream* out);

/// The recording, and what a host needs to do the same.
struct Golden {
    Recording recording;
    std::vector<std::string> wire;  ///< the lines of the .wire file
    std::vector<std::byte> firmware;
    std::vector<std::vector<std::byte>> inputs;        ///< payloads of the input stream, in order
    std::vector<std::vector<std::byte>> instructions;  ///< the same of the instruction stream
};
[[nodiscard]] Golden golden(const Scenario& scenario);
/// The same traffic with a stick that answers as real ones do, in place of the reference's
/// recorder: before it sleeps, scu_ctrl_3 reads with bits 4 and 6 clear, and the driver writes back
/// what it reads.
[[nodiscard]] std::vector<std::string> wire_of_a_stick(const Golden& golden);

[[nodiscard]] Package package_in(const std::string& model);
/// The packages of the scenario's models. The second of the co-compiled models is not in the data:
/// it is the model that was compiled alone, with the token and instructions of the recording.
[[nodiscard]] std::vector<Package> packages_for(const Scenario& scenario, const Golden& golden);

/// A simulated bus with one stick whose chip answers at once, for the scenario's models.
[[nodiscard]] std::shared_ptr<SimulatedBus> stick_for(const Scenario& scenario,
                                                      const Golden& golden);

/// Of a run: libusb's clock goes on while a simulated chip computes, for seconds under sanitizers.
inline constexpr Milliseconds no_deadline = std::chrono::minutes(10);

/// Opens a device, runs what the scenario says and closes. Returns the output tensors of each run.
[[nodiscard]] Result<std::vector<std::vector<std::vector<std::byte>>>> play(
    const Scenario& scenario, const Golden& golden, const std::shared_ptr<Bus>& bus);

}  // namespace reef::edgetpu::usb::test
