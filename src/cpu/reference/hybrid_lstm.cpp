// UNIDIRECTIONAL_SEQUENCE_LSTM of float32 inputs and states and int8 weights: each step quantises
// its input and what came out before, each batch by itself; sums of products are exact.
#include <algorithm>
#include <cmath>

#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/hybrid.h"
#include "cpu/reference/unidirectional_sequence_lstm.h"

namespace reef::cpu {
namespace {

struct HybridLstm {
    LstmSizes sizes;
    bool asymmetric = false;
    std::array<float, lstm_gate_count> input_scales{}, recurrent_scales{};
};

/// Whether steps of the values are none. TFLite divides by them, and loses the state.
bool vanishing(std::span<const float> values) {
    constexpr float least = 0x1p-119F;
    return std::ranges::all_of(values, [](float x) { return std::abs(x) < least; });
}

class HybridLstmKernel final : public Kernel {
  public:
    explicit HybridLstmKernel(HybridLstm lstm) : lstm_(lstm), sizes_(lstm_.sizes) {}

    [[nodiscard]] std::string name() const override {
        return "unidirectional_sequence_lstm hybrid";
    }
    /// Gates, and the steps of an input and of an output.
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return lstm_gate_count * units() * sizeof(float) +
               (depth() + units()) * sizeof(std::int16_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t rows =
            static_cast<std::size_t>(sizes_.batches) * static_cast<std::size_t>(sizes_.steps);
        // Before any state has changed.
        REEF_CHECK(expect_steps({frame.in<float>(0), rows * depth()}, depth(), lstm_.asymmetric));
        for (std::int32_t b = 0; b < sizes_.batches; ++b) {
            const auto state = static_cast<std::size_t>(b) * units();
            float* output_state = frame.state<float>(lstm_output_state_at) + state;
            float* cell_state = frame.state<float>(lstm_cell_state_at) + state;
            for (std::int32_t t = 0; t < sizes_.steps; ++t) {
                const auto row = static_cast<std::size_t>(sizes_.row(b, t));
                const float* in = frame.in<float>(0) + row * depth();
                REEF_CHECK(step(frame, {in, depth()}, cell_state, output_state));
                std::copy_n(output_state, units(), frame.out<float>(0) + row * units());
            }
        }
        return {};
    }

  private:
    [[nodiscard]] std::size_t depth() const { return static_cast<std::size_t>(sizes_.depth); }
    [[nodiscard]] std::size_t units() const { return static_cast<std::size_t>(sizes_.units); }

    [[nodiscard]] Result<float> recurrent_steps(std::span<const float> output,
                                                std::int16_t* steps) const {
        if (!vanishing(output))
            return in_place(write_steps(output, lstm_.asymmetric, steps), "the state of outputs");
        std::fill_n(steps, output.size(), std::int16_t{0});
        return 1.0F;
    }

    [[nodiscard]] Status step(const Frame& frame, std::span<const float> in, float* cell,
                              float* output) const {
        auto* gates = reinterpret_cast<float*>(frame.scratch.data());
        auto* in_steps = reinterpret_cast<std::int16_t*>(gates + lstm_gate_count * units());
        std::int16_t* out_steps = in_steps + depth();
        const float in_scale = REEF_TRY(write_steps(in, lstm_.asymmetric, in_steps));
        const float out_scale = REEF_TRY(recurrent_steps({output, units()}, out_steps));
        for (std::size_t g = 0; g < lstm_gate_count; ++g) {
            const auto* of_input = frame.in<std::int8_t>(lstm_input_weights_at + g);
            const auto* of_output = frame.in<std::int8_t>(lstm_recurrent_weights_at + g);
            const float by_input = in_scale * lstm_.input_scales[g];
            const float by_output = out_scale * lstm_.recurrent_scales[g];
            const float* bias = frame.in<float>(lstm_bias_at + g);
            for (std::size_t u = 0; u < units(); ++u) {
                const auto from_input =
                    static_cast<float>(dot_product(in_steps, of_input + u * depth(), depth()));
                const auto from_output =
                    static_cast<float>(dot_product(out_steps, of_output + u * units(), units()));
                const float sum = (bias == nullptr ? 0 : bias[u]) + from_input * by_input +
                                  from_output * by_output;
                gates[g * units() + u] = open_float_gate(g, sum);
            }
        }
        next_float_cell(sizes_, gates, cell, output);
        return {};
    }

    HybridLstm lstm_;
    const LstmSizes& sizes_;
};

}  // namespace

PreparedKernel prepare_hybrid_lstm(const OperatorView& op) {
    constexpr auto floats = ElementType::float32;
    HybridLstm lstm{.sizes = REEF_TRY(check_lstm_sizes(op, floats, floats))};
    const auto given = REEF_TRY(op.options<model::UnidirectionalSequenceLstmOptions>());
    lstm.asymmetric = given.asymmetric_quantize_inputs;
    const auto [units, depth] = std::pair(lstm.sizes.units, lstm.sizes.depth);
    const auto scale_of = [&](std::size_t position, const char* what,
                              std::int32_t width) -> Result<float> {
        REEF_CHECK(expect_lstm_input(op, position, what, ElementType::int8, {units, width}));
        return hybrid_weight_scale(op, position, what);
    };
    for (std::size_t g = 0; g < lstm_gate_count; ++g) {
        lstm.input_scales[g] =
            REEF_TRY(scale_of(lstm_input_weights_at + g, "input weights", depth));
        lstm.recurrent_scales[g] =
            REEF_TRY(scale_of(lstm_recurrent_weights_at + g, "recurrent weights", units));
        if (op.has_input(lstm_bias_at + g))
            REEF_CHECK(expect_lstm_input(op, lstm_bias_at + g, "a bias", floats, {units}));
    }
    return std::make_unique<HybridLstmKernel>(lstm);
}

}  // namespace reef::cpu
