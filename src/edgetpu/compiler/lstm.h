// An LSTM as layers of all its gates and the step that goes through them.
#pragma once

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {

/// Steps of an LSTM that a program holds: each has instructions of its own.
inline constexpr std::int32_t most_lstm_steps = 256;
/// The one cell scale that a known program has.
inline constexpr float lstm_cell_scale = 0x1p-12F;
/// Reach of the cell in that scale.
inline constexpr float lstm_largest_cell = 8;

/// Bytes of one gate: whole words.
[[nodiscard]] inline std::int32_t gate_bytes_of(const compiler::Lstm& lstm) {
    return static_cast<std::int32_t>(
        StackedGates::channels(static_cast<std::uint32_t>(lstm.units)));
}
/// One layer of the gates' products in the order of StackedGates, with a scale for each channel.
[[nodiscard]] compiler::Convolution stacked(const std::array<compiler::Convolution, 4>& gates,
                                            std::int32_t gate_bytes);
/// `hidden`: the value that the LSTM gives, of so many steps.
[[nodiscard]] LstmStep lstm_step(const compiler::Lstm& lstm, const compiler::Value& hidden);

}  // namespace reef::edgetpu::lowering
