// What operators on the chip cost, and which forms of programs no real chip has shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reef::rk3588 {

/// Bytes that the chip reads and writes in one inference, as its registers say.
struct BytesMoved {
    std::uint64_t features = 0, weights = 0, operands = 0, commands = 0, results = 0;
    [[nodiscard]] std::uint64_t total() const {
        return features + weights + operands + commands + results;
    }
};

/// An operator on the chip.
struct OperatorReport {
    std::size_t index = 0;  ///< in the plain model
    std::string name;
    std::size_t tasks = 0;
    std::int32_t data_banks = 0, weight_banks = 0;  ///< 0: it does not use the CBUF
    std::uint64_t macs = 0;
    BytesMoved bytes;
    std::int32_t first_core = 0;
    std::size_t cores = 1;        ///< that share it
    std::uint64_t cycles = 0;     ///< estimated, without other operators at once
    double worst_gain_error = 0;  ///< of a channel's constants, relative
};

/// A form that the program uses and that no stream of a real RK3588 has shown in int8.
struct UnprovenForm {
    std::string what;
    std::size_t operators = 0;
};

}  // namespace reef::rk3588
