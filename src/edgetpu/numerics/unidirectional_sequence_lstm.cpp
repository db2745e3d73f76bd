// UNIDIRECTIONAL_SEQUENCE_LSTM: gates in 8 bits of the hidden state's scale, products of them and
// the cell in 16.
#include "cpu/reference/unidirectional_sequence_lstm.h"

#include <algorithm>
#include <limits>

#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/kernels.h"
#include "edgetpu/numerics/closest_ratio.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

// What the vendor's compiler takes for values between 0 and 1, and between -1 and 1.
constexpr float gate_step = 1.0F / 255;
constexpr float candidate_step = 2.0F / 255;
constexpr float fine_step = 2.0F / 32767;  ///< of the tanh of the cell, and of products of gates

/// Zero points of 16-bit values, which the chip holds unsigned.
constexpr std::int32_t cell_zero = 32768;
constexpr std::int32_t added_zero = 16384;

constexpr ClampRange sixteen_bits{0, std::numeric_limits<std::uint16_t>::max()};

struct Scales {
    std::array<float, lstm_gate_count> input{}, recurrent{};
    float hidden = 1;     ///< of the gates' sums and of the output
    float kept = 1;       ///< of forget gate times cell, to the cell's steps
    float added = 1;      ///< of input gate times candidate, to fine steps
    Ratio weights;        ///< of the two in their sum
    float cell = 1;       ///< of that sum, to the cell's steps
    float real_cell = 1;  ///< of that sum, to real numbers
    float output = 1;     ///< of output gate times the cell's tanh
};

/// A function of magnitudes, with the argument's sign.
float odd(const PolynomialTable& table, float x) {
    return x < 0 ? -table(-x) : table(x);
}

class ChipLstm final : public Kernel {
  public:
    ChipLstm(LstmGates gates, const Scales& scales, FloatRequantisation hidden)
        : gates_(std::move(gates)), scales_(scales), hidden_(hidden) {}

    [[nodiscard]] std::string name() const override {
        return "unidirectional_sequence_lstm reference";
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return lstm_gate_count * static_cast<std::size_t>(gates_.units);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto depth = static_cast<std::ptrdiff_t>(gates_.depth);
        const auto units = static_cast<std::ptrdiff_t>(gates_.units);
        auto* gates = reinterpret_cast<std::uint8_t*>(frame.scratch.data());
        auto* hidden = frame.state<std::int8_t>(lstm_output_state_at);
        auto* cell = frame.state<std::int16_t>(lstm_cell_state_at);
        for (std::int32_t t = 0; t < gates_.steps; ++t) {
            step(frame.in<std::int8_t>(0) + t * depth, gates, cell, hidden);
            std::copy_n(hidden, units, frame.out<std::int8_t>(0) + t * units);
        }
        return {};
    }

  private:
    /// A product in the hidden state's steps, less the zero point.
    [[nodiscard]] std::int32_t product(const LstmProduct& of, float scale, const std::int8_t* in,
                                       std::size_t unit, std::size_t depth) const {
        const std::int32_t sum = dot_product(in, of.weights.data() + unit * depth, depth);
        const std::uint32_t biased =
            static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(of.bias[unit]);
        return hidden_(static_cast<std::int32_t>(biased), scale) - hidden_.zero_point;
    }

    [[nodiscard]] std::uint8_t gate(std::size_t g, std::int32_t sum) const {
        const float real = static_cast<float>(sum) * scales_.hidden;
        std::int32_t value = 0;
        if (g == cell_gate) {
            constexpr std::int32_t zero = 128;
            value =
                zero + round_half_even(odd(tanh_127, std::clamp(real, -tanh_limit, tanh_limit)));
        } else {
            value = round_half_even(sigmoid_255(std::clamp(real, -sigmoid_limit, sigmoid_limit)));
        }
        return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
    }

    void step(const std::int8_t* in, std::uint8_t* gates, std::int16_t* cell,
              std::int8_t* hidden) const {
        const auto depth = static_cast<std::size_t>(gates_.depth);
        const auto units = static_cast<std::size_t>(gates_.units);
        for (std::size_t g = 0; g < lstm_gate_count; ++g)
            for (std::size_t u = 0; u < units; ++u)
                gates[g * units + u] = gate(
                    g, product(gates_.input[g], scales_.input[g], in, u, depth) +
                           product(gates_.recurrent[g], scales_.recurrent[g], hidden, u, units));
        for (std::size_t u = 0; u < units; ++u) {
            const std::int32_t sum =
                sum_of(cell[u], gates[forget_gate * units + u], gates[input_gate * units + u],
                       gates[cell_gate * units + u]);
            const FloatRequantisation to_cell{-32768, 32767, 0, {-32768, 32767}};
            cell[u] = static_cast<std::int16_t>(to_cell(sum, scales_.cell));
            const float real = static_cast<float>(sum) * scales_.real_cell;
            const std::int32_t squashed =
                round_half_even(odd(tanh_16383, std::clamp(real, -tanh_limit, tanh_limit)));
            hidden[u] = static_cast<std::int8_t>(
                hidden_(gates[output_gate * units + u] * squashed, scales_.output));
        }
    }

    /// The next cell in steps of both its summands, each of which has 16 bits.
    [[nodiscard]] std::int32_t sum_of(std::int16_t cell, std::int32_t forget, std::int32_t input,
                                      std::int32_t candidate) const {
        const FloatRequantisation kept{-cell_zero, 32767, cell_zero, sixteen_bits};
        const FloatRequantisation added{-added_zero, 49151, added_zero, sixteen_bits};
        const auto a = std::int64_t{kept(forget * cell, scales_.kept) - cell_zero};
        const auto b = std::int64_t{added(input * (candidate - 128), scales_.added) - added_zero};
        return static_cast<std::int32_t>(a * scales_.weights.numerator +
                                         b * scales_.weights.denominator);
    }

    LstmGates gates_;
    Scales scales_;
    FloatRequantisation hidden_;
};

/// As the one known program with a recurrent network has them, all to the last bit.
Result<Scales> scales_of(const LstmGates& gates, AffineParameters hidden) {
    Scales scales;
    scales.hidden = hidden.scale;
    for (std::size_t g = 0; g < lstm_gate_count; ++g) {
        const auto of = [&](const LstmProduct& product) {
            return float_scale(product.factor_scale * product.weight_scale, hidden);
        };
        scales.input[g] = REEF_TRY(of(gates.input[g]));
        scales.recurrent[g] = REEF_TRY(of(gates.recurrent[g]));
    }
    constexpr std::int32_t largest_weight = 32767;
    const float cell = gates.cell.scale;
    scales.kept = REEF_TRY(float_scale(gate_step * cell, gates.cell));
    scales.added = REEF_TRY(float_scale(gate_step * candidate_step, {fine_step, 0}));
    scales.weights =
        closest_ratio(static_cast<double>(cell) / static_cast<double>(fine_step), largest_weight);
    scales.real_cell = cell / static_cast<float>(scales.weights.numerator);
    scales.cell = REEF_TRY(float_scale(scales.real_cell, gates.cell));
    scales.output = REEF_TRY(float_scale(gate_step * fine_step, hidden));
    return scales;
}

}  // namespace

PreparedKernel unidirectional_sequence_lstm(const OperatorView& op,
                                            const PrepareOptions& /*options*/) {
    LstmGates gates = REEF_TRY(check_lstm(op));
    if (gates.batches != 1)
        return unknown_on_edgetpu("UNIDIRECTIONAL_SEQUENCE_LSTM of several batches");
    if (gates.cell.scale != 0x1p-12F)
        return unknown_on_edgetpu("UNIDIRECTIONAL_SEQUENCE_LSTM with a cell scale but 2^-12");
    constexpr float largest_cell = 8;
    if (gates.cell_clip != 0 && !(gates.cell_clip >= largest_cell))
        return unknown_on_edgetpu("UNIDIRECTIONAL_SEQUENCE_LSTM with a cell that is clipped");
    const auto hidden = REEF_TRY(per_tensor_parameters(op.input(lstm_output_state_at)));
    if (REEF_TRY(per_tensor_parameters(op.output(0))) != hidden)
        return unknown_on_edgetpu(
            "UNIDIRECTIONAL_SEQUENCE_LSTM whose output and state have other quantisations");
    constexpr std::size_t projected = 4;  // what a projection would read
    if (op.has_intermediate(projected) &&
        REEF_TRY(per_tensor_parameters(op.intermediate(projected))) != hidden)
        return unknown_on_edgetpu(
            "UNIDIRECTIONAL_SEQUENCE_LSTM whose hidden value has another quantisation than its "
            "output");
    const Scales scales = REEF_TRY(scales_of(gates, hidden));
    return std::make_unique<ChipLstm>(
        std::move(gates), scales,
        REEF_TRY(float_requantisation(model::Activation::none, op.output(0))));
}

}  // namespace reef::edgetpu::numerics
