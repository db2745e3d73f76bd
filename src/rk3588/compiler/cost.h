// What operators on the chip cost, and which forms of programs no real chip has shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rk3588/artifact/artifact.h"
#include "rk3588/stream/task_work.h"

namespace reef::rk3588 {

/// An operator on the chip.
struct OperatorReport {
    std::size_t index = 0;  ///< in the plain model
    std::string name;
    std::size_t tasks = 0;
    std::int32_t data_banks = 0, weight_banks = 0;  ///< 0: it does not use the CBUF
    std::uint64_t macs = 0;
    BytesMoved bytes;
    std::uint64_t sram_bytes = 0;  ///< of those, to and from the chip's SRAM
    std::int32_t first_core = 0;
    std::size_t cores = 1;        ///< that share it
    std::uint64_t cycles = 0;     ///< estimated, without other operators at once
    double worst_gain_error = 0;  ///< of a channel's constants, relative
};

}  // namespace reef::rk3588
