// UNIDIRECTIONAL_SEQUENCE_LSTM with int8 inputs and weights and an int16 cell, checked: what every
// arithmetic of it begins with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

inline constexpr std::size_t lstm_gate_count = 4;
enum LstmGate : std::size_t { input_gate, forget_gate, cell_gate, output_gate };

// Positions of the states among the operator's inputs.
inline constexpr std::size_t lstm_output_state_at = 18;
inline constexpr std::size_t lstm_cell_state_at = 19;

/// int8 weights of one product of a gate.
struct LstmProduct {
    std::vector<std::int8_t> weights;  ///< units x depth
    std::vector<std::int32_t> bias;    ///< gate bias - zero point * sum of the unit's weights
    float weight_scale = 1;
    float factor_scale = 1;  ///< of what the weights multiply
};

struct LstmGates {
    std::int32_t batches = 0, steps = 0, depth = 0, units = 0;
    bool time_major = false;
    std::array<LstmProduct, lstm_gate_count> input, recurrent;
    AffineParameters cell;
    float cell_clip = 0;  ///< 0: none

    /// Which row of the inputs, or of the outputs, a step of a batch is.
    [[nodiscard]] std::ptrdiff_t row(std::int32_t batch, std::int32_t step) const {
        return time_major ? static_cast<std::ptrdiff_t>(step) * batches + batch
                          : static_cast<std::ptrdiff_t>(batch) * steps + step;
    }
};

/// Errors: unsupported for CIFG, peephole connections, a projection, layer normalisation and
/// activations other than TANH; bad_input for shapes and types that do not fit each other.
[[nodiscard]] Result<LstmGates> check_lstm(const OperatorView& op);

}  // namespace reef::cpu
