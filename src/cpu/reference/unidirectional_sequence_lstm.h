// UNIDIRECTIONAL_SEQUENCE_LSTM, checked: what every arithmetic of it begins with, of any element
// type, and with int8 inputs and weights and an int16 cell; and what those of a float32 cell share.
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

// Positions among the operator's inputs; those of a gate are its number further on.
inline constexpr std::size_t lstm_input_weights_at = 1;
inline constexpr std::size_t lstm_recurrent_weights_at = 5;
inline constexpr std::size_t lstm_bias_at = 12;
inline constexpr std::size_t lstm_output_state_at = 18;
inline constexpr std::size_t lstm_cell_state_at = 19;

struct LstmSizes {
    std::int32_t batches = 0, steps = 0, depth = 0, units = 0;
    bool time_major = false;
    float cell_clip = 0;  ///< 0: none

    /// Which row of the inputs, or of the outputs, a step of a batch is.
    [[nodiscard]] std::ptrdiff_t row(std::int32_t batch, std::int32_t step) const {
        return time_major ? static_cast<std::ptrdiff_t>(step) * batches + batch
                          : static_cast<std::ptrdiff_t>(batch) * steps + step;
    }
};

/// int8 weights of one product of a gate.
struct LstmProduct {
    std::vector<std::int8_t> weights;  ///< units x depth
    std::vector<std::int32_t> bias;    ///< gate bias - zero point * sum of the unit's weights
    float weight_scale = 1;
    float factor_scale = 1;  ///< of what the weights multiply
};

struct LstmGates : LstmSizes {
    std::array<LstmProduct, lstm_gate_count> input, recurrent;
    AffineParameters cell;
};

/// The sizes, with the form, the input's, the states' and the output's shapes checked; `value` is
/// the element type of all of these but the cell state. Errors: unsupported for CIFG, peephole
/// connections, a projection, layer normalisation and activations other than TANH; bad_input for
/// shapes and types that do not fit each other.
[[nodiscard]] Result<LstmSizes> check_lstm_sizes(const OperatorView& op, ElementType value,
                                                 ElementType cell);

/// The int8 form. Errors: those of check_lstm_sizes(), also for weights that are not constant.
[[nodiscard]] Result<LstmGates> check_lstm(const OperatorView& op);

/// The forms of float32 inputs and states, on weights of float32 and of int8.
[[nodiscard]] PreparedKernel prepare_float_lstm(const OperatorView& op);
[[nodiscard]] PreparedKernel prepare_hybrid_lstm(const OperatorView& op);

/// Errors: bad_input for an input that is missing; unsupported for other types and shapes.
[[nodiscard]] Status expect_lstm_input(const OperatorView& op, std::size_t position,
                                       const char* what, ElementType type,
                                       const std::vector<std::int32_t>& shape);

/// The gates of a sum, and with all of them (units of each, one gate after another) the next cell
/// and output.
[[nodiscard]] float open_float_gate(std::size_t gate, float sum);
void next_float_cell(const LstmSizes& sizes, const float* gates, float* cell, float* output);

}  // namespace reef::cpu
