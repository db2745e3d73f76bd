// UNIDIRECTIONAL_SEQUENCE_LSTM of float32.
//
// Sums run from first to last here, in TFLite in lanes: as in batch_matmul.cpp. Functions come from
// the C library.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/dot_product.h"
#include "cpu/reference/unidirectional_sequence_lstm.h"

namespace reef::cpu {
namespace {

class FloatLstmKernel final : public Kernel {
  public:
    explicit FloatLstmKernel(LstmSizes sizes) : sizes_(sizes) {}

    [[nodiscard]] std::string name() const override {
        return "unidirectional_sequence_lstm reference";
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return lstm_gate_count * static_cast<std::size_t>(sizes_.units) * sizeof(float);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto depth = static_cast<std::ptrdiff_t>(sizes_.depth);
        const auto units = static_cast<std::ptrdiff_t>(sizes_.units);
        for (std::int32_t b = 0; b < sizes_.batches; ++b) {
            float* output_state = frame.state<float>(lstm_output_state_at) + b * units;
            float* cell_state = frame.state<float>(lstm_cell_state_at) + b * units;
            for (std::int32_t t = 0; t < sizes_.steps; ++t) {
                const std::ptrdiff_t row = sizes_.row(b, t);
                step(frame, frame.in<float>(0) + row * depth, cell_state, output_state);
                std::copy_n(output_state, units, frame.out<float>(0) + row * units);
            }
        }
        return {};
    }

  private:
    void step(const Frame& frame, const float* in, float* cell, float* output) const {
        const auto depth = static_cast<std::size_t>(sizes_.depth);
        const auto units = static_cast<std::size_t>(sizes_.units);
        auto* gates = reinterpret_cast<float*>(frame.scratch.data());
        for (std::size_t g = 0; g < lstm_gate_count; ++g) {
            const float* of_input = frame.in<float>(lstm_input_weights_at + g);
            const float* of_output = frame.in<float>(lstm_recurrent_weights_at + g);
            const float* bias = frame.in<float>(lstm_bias_at + g);
            for (std::size_t u = 0; u < units; ++u) {
                const float sum = (bias == nullptr ? 0 : bias[u]) +
                                  dot_product(in, of_input + u * depth, depth) +
                                  dot_product(output, of_output + u * units, units);
                gates[g * units + u] = open_float_gate(g, sum);
            }
        }
        next_float_cell(sizes_, gates, cell, output);
    }

    LstmSizes sizes_;
};

}  // namespace

Status expect_lstm_input(const OperatorView& op, std::size_t position, const char* what,
                         ElementType type, const std::vector<std::int32_t>& shape) {
    if (!op.has_input(position))
        return fail(Cause::bad_input, fmt::format("input {} is missing", position));
    REEF_CHECK(expect_type(op.input(position), what, {type}));
    return expect_shape(op.input(position), what, shape);
}

float open_float_gate(std::size_t gate, float sum) {
    return gate == cell_gate ? std::tanh(sum) : 1 / (1 + std::exp(-sum));
}

void next_float_cell(const LstmSizes& sizes, const float* gates, float* cell, float* output) {
    const auto units = static_cast<std::size_t>(sizes.units);
    for (std::size_t u = 0; u < units; ++u) {
        const float next = gates[forget_gate * units + u] * cell[u] +
                           gates[input_gate * units + u] * gates[cell_gate * units + u];
        const float clip = sizes.cell_clip;
        cell[u] = clip == 0 ? next : std::clamp(next, -clip, clip);
        output[u] = gates[output_gate * units + u] * std::tanh(cell[u]);
    }
}

PreparedKernel prepare_float_lstm(const OperatorView& op) {
    const LstmSizes sizes =
        REEF_TRY(check_lstm_sizes(op, ElementType::float32, ElementType::float32));
    constexpr auto floats = ElementType::float32;
    for (std::size_t g = 0; g < lstm_gate_count; ++g) {
        REEF_CHECK(expect_lstm_input(op, lstm_input_weights_at + g, "input weights", floats,
                                     {sizes.units, sizes.depth}));
        REEF_CHECK(expect_lstm_input(op, lstm_recurrent_weights_at + g, "recurrent weights", floats,
                                     {sizes.units, sizes.units}));
        if (op.has_input(lstm_bias_at + g))
            REEF_CHECK(expect_lstm_input(op, lstm_bias_at + g, "a bias", floats, {sizes.units}));
    }
    return std::make_unique<FloatLstmKernel>(sizes);
}

}  // namespace reef::cpu
