// The registers of a simulated stick, and which of them have a life of their own.
//
// Source of what they read in each phase: captures of real sticks (docs/edgetpu-usb.md).
#pragma once

#include <cstdint>
#include <map>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::usb {

class StickRegisters {
  public:
    /// The stick gets power, and its firmware starts.
    void power_on() { values_.clear(); }
    /// Of the bus. Registers of the OMC and SCU units outlive it, the clock with them.
    void bus_reset();

    /// `idle`: the chip has no program to run.
    [[nodiscard]] std::uint64_t read(std::uint32_t offset, bool idle) const;
    void write(std::uint32_t offset, std::uint64_t value);

    [[nodiscard]] bool awake() const;
    /// Every engine of the scalar core takes work. A scalar core that a debugger holds does not
    /// keep the DMA from taking bytes.
    [[nodiscard]] bool engines_run() const;
    /// Each tag has an endpoint of its own, without headers.
    [[nodiscard]] bool multiple_endpoints() const;
    /// Bytes that the output endpoint sends at once.
    [[nodiscard]] std::size_t output_chunk() const;
    /// Events of that tag go to the host.
    [[nodiscard]] bool reports(Tag tag) const;

  private:
    /// What was written last, or the value after power on.
    [[nodiscard]] std::uint64_t value(std::uint32_t offset) const;
    [[nodiscard]] std::uint64_t value(const RegisterInfo* info) const {
        return value(info->offset);
    }
    [[nodiscard]] std::uint64_t power_and_clock(bool idle) const;
    void sleep();

    std::map<std::uint32_t, std::uint64_t> values_;  ///< by offset
};

}  // namespace reef::edgetpu::usb
