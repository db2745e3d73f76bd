// UNIDIRECTIONAL_SEQUENCE_LSTM with int8 inputs and weights and an int16 cell ("int8x8_16").
//
// Per step and batch: four gates, each requantised from an int8 input product and an int8 recurrent
// product to 3 integer and 12 fractional bits; logistic or tanh of them in 16-bit fixed point; the
// cell with a power-of-two scale; the output requantised to the hidden scale.
#include "cpu/reference/unidirectional_sequence_lstm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/fixed_point_functions.h"
#include "cpu/prepare/kernels.h"

namespace reef::cpu {
namespace {

constexpr std::size_t gate_count = lstm_gate_count;
constexpr std::array<const char*, gate_count> gate_names{"input", "forget", "cell", "output"};

/// What turns the sums into gate units, and those into the cell's and the output's.
struct Lstm {
    LstmGates gates;
    std::array<Multiplier, gate_count> input, recurrent;
    int cell_integer_bits = 0;
    std::int32_t cell_clip = 0;  ///< in cell units; 0: none
    Multiplier hidden;
    std::int32_t hidden_zero_point = 0;
};

std::int16_t saturate16(std::int64_t x) {
    return static_cast<std::int16_t>(std::clamp<std::int64_t>(x, INT16_MIN, INT16_MAX));
}

class LstmKernel final : public Kernel {
  public:
    explicit LstmKernel(Lstm lstm) : lstm_(std::move(lstm)) {}

    [[nodiscard]] std::string name() const override {
        return "unidirectional_sequence_lstm reference";
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return gate_count * static_cast<std::size_t>(lstm_.gates.units) * sizeof(std::int16_t);
    }
    [[nodiscard]] std::size_t packed_bytes() const override {
        std::size_t bytes = 0;
        for (std::size_t g = 0; g < gate_count; ++g)
            for (const LstmProduct* p : {&lstm_.gates.input[g], &lstm_.gates.recurrent[g]})
                bytes += p->weights.size() + p->bias.size() * sizeof(std::int32_t);
        return bytes;
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const LstmGates& sizes = lstm_.gates;
        const auto depth = static_cast<std::ptrdiff_t>(sizes.depth);
        const auto units = static_cast<std::ptrdiff_t>(sizes.units);
        auto* gates = reinterpret_cast<std::int16_t*>(frame.scratch.data());
        for (std::int32_t b = 0; b < sizes.batches; ++b) {
            auto* output_state = frame.state<std::int8_t>(lstm_output_state_at) + b * units;
            auto* cell_state = frame.state<std::int16_t>(lstm_cell_state_at) + b * units;
            for (std::int32_t t = 0; t < sizes.steps; ++t) {
                const std::ptrdiff_t row = sizes.row(b, t);
                step(frame.in<std::int8_t>(0) + row * depth, gates, cell_state, output_state);
                std::copy_n(output_state, units, frame.out<std::int8_t>(0) + row * units);
            }
        }
        return {};
    }

  private:
    static std::int32_t scaled_product(const LstmProduct& product, const Multiplier& multiplier,
                                       const std::int8_t* in, std::size_t unit, std::size_t depth) {
        const std::int32_t sum = dot_product(in, product.weights.data() + unit * depth, depth);
        const std::uint32_t biased =
            static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(product.bias[unit]);
        return multiply_by_quantized_multiplier(static_cast<std::int32_t>(biased), multiplier);
    }

    void step(const std::int8_t* in, std::int16_t* gates, std::int16_t* cell,
              std::int8_t* output) const {
        const auto depth = static_cast<std::size_t>(lstm_.gates.depth);
        const auto units = static_cast<std::size_t>(lstm_.gates.units);
        constexpr int gate_integer_bits = 3;
        for (std::size_t g = 0; g < gate_count; ++g) {
            const LstmProduct& of_input = lstm_.gates.input[g];
            const LstmProduct& of_output = lstm_.gates.recurrent[g];
            for (std::size_t u = 0; u < units; ++u) {
                const std::int64_t from_input =
                    saturate16(scaled_product(of_input, lstm_.input[g], in, u, depth));
                const std::int16_t sum = saturate16(
                    from_input + scaled_product(of_output, lstm_.recurrent[g], output, u, units));
                gates[g * units + u] = g == cell_gate
                                           ? fixed_point_tanh(sum, gate_integer_bits)
                                           : fixed_point_logistic(sum, gate_integer_bits);
            }
        }
        for (std::size_t u = 0; u < units; ++u) {
            cell[u] = next_cell(cell[u], gates[forget_gate * units + u],
                                gates[input_gate * units + u], gates[cell_gate * units + u]);
            output[u] = hidden(cell[u], gates[output_gate * units + u]);
        }
    }

    [[nodiscard]] std::int16_t next_cell(std::int16_t cell, std::int16_t forget, std::int16_t input,
                                         std::int16_t candidate) const {
        const auto kept = static_cast<std::int16_t>(rounding_divide_by_pot(forget * cell, 15));
        const auto added = static_cast<std::int16_t>(
            rounding_divide_by_pot(input * candidate, 15 + lstm_.cell_integer_bits));
        const std::int16_t next = saturate16(kept + added);
        if (lstm_.cell_clip == 0) return next;
        return static_cast<std::int16_t>(
            std::clamp<std::int32_t>(next, -lstm_.cell_clip, lstm_.cell_clip));
    }

    [[nodiscard]] std::int8_t hidden(std::int16_t cell, std::int16_t output) const {
        const std::int32_t product = output * fixed_point_tanh(cell, lstm_.cell_integer_bits);
        // TFLite subtracts the hidden zero point where adding it would be right.
        const std::int64_t q =
            std::int64_t{multiply_by_quantized_multiplier(product, lstm_.hidden)} -
            lstm_.hidden_zero_point;
        return static_cast<std::int8_t>(std::clamp<std::int64_t>(q, INT8_MIN, INT8_MAX));
    }

    Lstm lstm_;
};

Status refuse_other_forms(const OperatorView& op,
                          const model::UnidirectionalSequenceLstmOptions& given) {
    const auto refuse = [](const char* what) { return fail(Cause::unsupported, what); };
    if (given.activation != model::Activation::tanh) return refuse("an activation other than TANH");
    if (given.diagonal_recurrent_tensors) return refuse("diagonal recurrent weights");
    if (!op.has_input(lstm_input_weights_at))
        return refuse("a coupled input and forget gate (CIFG)");
    for (std::size_t i = 9; i < 12; ++i)
        if (op.has_input(i)) return refuse("peephole connections");
    for (std::size_t i = 16; i < 18; ++i)
        if (op.has_input(i)) return refuse("a projection");
    for (std::size_t i = 20; i < 24; ++i)
        if (op.has_input(i)) return refuse("layer normalisation");
    return {};
}

/// The sizes, with the input's, the states' and the output's shapes checked against each other.
Result<LstmSizes> check_shapes(const OperatorView& op, bool time_major, ElementType value,
                               ElementType cell) {
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "the input", {value}));
    REEF_CHECK(expect_type(op.output(0), "the output", {value}));
    for (const std::size_t i : {lstm_output_state_at, lstm_cell_state_at}) {
        if (!op.has_input(i) || !op.input(i).is_variable)
            return fail(Cause::bad_input, fmt::format("input {} is not a state tensor", i));
    }
    REEF_CHECK(expect_type(op.input(lstm_output_state_at), "the output state", {value}));
    REEF_CHECK(expect_type(op.input(lstm_cell_state_at), "the cell state", {cell}));
    if (input.shape.size() != 3 || input.element_count() == 0)
        return fail(Cause::bad_input, fmt::format("the input is {}, not batch x time x depth",
                                                  model::shape_text(input.shape)));
    LstmSizes lstm;
    lstm.time_major = time_major;
    lstm.batches = input.shape[time_major ? 1 : 0];
    lstm.steps = input.shape[time_major ? 0 : 1];
    lstm.depth = input.shape[2];
    if (!op.has_input(lstm_input_weights_at + output_gate) ||
        op.input(lstm_input_weights_at + output_gate).shape.size() != 2)
        return fail(Cause::bad_input, "the output gate's weights are not units x depth");
    lstm.units = op.input(lstm_input_weights_at + output_gate).shape[0];
    // Sums of int8 products stay below 2^31.
    constexpr std::int32_t largest = 1 << 16;
    if (lstm.units < 1 || lstm.units > largest || lstm.depth > largest)
        return fail(Cause::unsupported, fmt::format("{} units on {} inputs, more than {}",
                                                    lstm.units, lstm.depth, largest));
    const std::vector<std::int32_t> state{lstm.batches, lstm.units};
    REEF_CHECK(expect_shape(op.input(lstm_output_state_at), "the output state", state));
    REEF_CHECK(expect_shape(op.input(lstm_cell_state_at), "the cell state", state));
    std::vector<std::int32_t> output = input.shape;
    output[2] = lstm.units;
    REEF_CHECK(expect_shape(op.output(0), "the output", output));
    return lstm;
}

/// `scale_in`: of what the weights multiply; `zero_point`: of the same.
Result<LstmProduct> check_product(const OperatorView& op, std::size_t position,
                                  const std::vector<std::int32_t>& shape, AffineParameters in,
                                  std::vector<std::int32_t> bias) {
    if (!op.has_input(position))
        return fail(Cause::bad_input, fmt::format("input {} is missing", position));
    const model::Tensor& tensor = op.input(position);
    REEF_CHECK(expect_type(tensor, "weights", {ElementType::int8}));
    REEF_CHECK(expect_shape(tensor, "weights", shape));
    const auto weights = REEF_TRY(per_tensor_parameters(tensor));
    const Bytes bytes = op.constant(position);
    if (bytes.empty()) return fail(Cause::unsupported, "weights that are not constant");
    if (weights.zero_point != 0)
        return fail(Cause::unsupported,
                    fmt::format("weights with zero point {}", weights.zero_point));
    LstmProduct product{.weights = {},
                        .bias = std::move(bias),
                        .weight_scale = weights.scale,
                        .factor_scale = in.scale};
    const auto* first = reinterpret_cast<const std::int8_t*>(bytes.data());
    const auto units = static_cast<std::size_t>(shape[0]);
    const auto depth = static_cast<std::size_t>(shape[1]);
    product.weights.assign(first, first + units * depth);
    product.bias.resize(units);
    for (std::size_t u = 0; u < units; ++u) {
        // Wraps as the machine's additions do.
        auto sum = static_cast<std::uint32_t>(product.bias[u]);
        for (std::size_t i = 0; i < depth; ++i)
            sum -= static_cast<std::uint32_t>(in.zero_point * product.weights[u * depth + i]);
        product.bias[u] = static_cast<std::int32_t>(sum);
    }
    return product;
}

Status check_gates(const OperatorView& op, LstmGates& lstm) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto state = REEF_TRY(per_tensor_parameters(op.input(lstm_output_state_at)));
    const std::vector<std::int32_t> input_shape{lstm.units, lstm.depth};
    const std::vector<std::int32_t> recurrent_shape{lstm.units, lstm.units};
    for (std::size_t g = 0; g < gate_count; ++g) {
        const std::string place = fmt::format("{} gate", gate_names[g]);
        std::vector<std::int32_t> bias;
        if (op.has_input(lstm_bias_at + g)) {
            REEF_CHECK(
                in_place(expect_shape(op.input(lstm_bias_at + g), "bias", {lstm.units}), place));
            bias = REEF_TRY(in_place(constant_int32(op, lstm_bias_at + g, "the bias"), place));
        }
        lstm.input[g] = REEF_TRY(in_place(
            check_product(op, lstm_input_weights_at + g, input_shape, in, std::move(bias)), place));
        lstm.recurrent[g] = REEF_TRY(in_place(
            check_product(op, lstm_recurrent_weights_at + g, recurrent_shape, state, {}), place));
    }
    return {};
}

Result<Multiplier> gate_multiplier(const LstmProduct& product) {
    constexpr float gate_scale = 0x1p-12F;
    return checked_multiplier(product.weight_scale * product.factor_scale / gate_scale);
}

Status check_multipliers(Lstm& lstm) {
    for (std::size_t g = 0; g < gate_count; ++g) {
        const std::string place = fmt::format("{} gate", gate_names[g]);
        lstm.input[g] = REEF_TRY(in_place(gate_multiplier(lstm.gates.input[g]), place));
        lstm.recurrent[g] = REEF_TRY(in_place(gate_multiplier(lstm.gates.recurrent[g]), place));
    }
    return {};
}

Status check_cell(Lstm& lstm) {
    const float scale = lstm.gates.cell.scale;
    int exponent = 0;
    if (std::frexp(scale, &exponent) != 0.5F || exponent - 1 > -9 || exponent - 1 < -15)
        return fail(
            Cause::unsupported,
            fmt::format("a cell scale of {}, not a power of two from 2^-15 to 2^-9", scale));
    lstm.cell_integer_bits = 15 + exponent - 1;
    if (lstm.gates.cell_clip > 0)
        lstm.cell_clip =
            static_cast<std::int32_t>(std::min(lstm.gates.cell_clip / scale, 32767.0F));
    return {};
}

/// The fifth intermediate tensor holds the quantisation of the output before a projection.
Status check_hidden(const OperatorView& op, Lstm& lstm) {
    if (!op.has_intermediate(4))
        return fail(Cause::unsupported, "no intermediate tensor with the hidden quantisation");
    const auto hidden = REEF_TRY(per_tensor_parameters(op.intermediate(4)));
    lstm.hidden_zero_point = hidden.zero_point;
    lstm.hidden = REEF_TRY(checked_multiplier(
        static_cast<float>(0x1p-15 / static_cast<double>(hidden.scale) * 0x1p-15)));
    return {};
}

}  // namespace

Result<LstmSizes> check_lstm_sizes(const OperatorView& op, ElementType value, ElementType cell) {
    REEF_CHECK(op.expect_counts(1, 24, 1));
    const auto given = REEF_TRY(op.options<model::UnidirectionalSequenceLstmOptions>());
    if (op.input_count() != 20 && op.input_count() != 24)
        return fail(Cause::bad_input, fmt::format("{} inputs, not 20 or 24", op.input_count()));
    REEF_CHECK(refuse_other_forms(op, given));
    LstmSizes sizes = REEF_TRY(check_shapes(op, given.time_major, value, cell));
    if (!(given.cell_clip >= 0)) return fail(Cause::bad_input, "a negative cell_clip");
    sizes.cell_clip = given.cell_clip;
    return sizes;
}

Result<LstmGates> check_lstm(const OperatorView& op) {
    LstmGates lstm{
        REEF_TRY(check_lstm_sizes(op, ElementType::int8, ElementType::int16)), {}, {}, {}};
    REEF_CHECK(check_gates(op, lstm));
    lstm.cell = REEF_TRY(per_tensor_parameters(op.input(lstm_cell_state_at)));
    return lstm;
}

PreparedKernel prepare_unidirectional_sequence_lstm(const OperatorView& op,
                                                    const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 24, 1));
    if (op.input(0).type == ElementType::float32) {
        constexpr std::size_t weights = lstm_input_weights_at + output_gate;
        const bool hybrid = op.has_input(weights) && op.input(weights).type == ElementType::int8;
        return hybrid ? prepare_hybrid_lstm(op) : prepare_float_lstm(op);
    }
    Lstm lstm;
    lstm.gates = REEF_TRY(check_lstm(op));
    REEF_CHECK(check_multipliers(lstm));
    REEF_CHECK(check_cell(lstm));
    REEF_CHECK(check_hidden(op, lstm));
    return std::make_unique<LstmKernel>(std::move(lstm));
}

}  // namespace reef::cpu
