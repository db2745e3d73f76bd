// Operators that keep a state from run to run.
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/graph_reader.h"

namespace reef::compiler {
namespace {

// Positions among an LSTM's inputs.
constexpr std::size_t lstm_input_weights = 1, lstm_recurrent_weights = 5, lstm_biases = 12,
                      lstm_output_state = 18, lstm_cell_state = 19;
/// Of its intermediate tensors: the quantisation of what a projection would read.
constexpr std::size_t lstm_hidden = 4;
/// Peephole connections, a projection and layer normalisation.
constexpr std::size_t lstm_extras[] = {9, 10, 11, 16, 17, 20, 21, 22, 23};

}  // namespace

bool GraphReader::is_kept_by(const Operator& op, ValueId value) const {
    if (op.code.builtin != Op::unidirectional_sequence_lstm) return false;
    return std::ranges::any_of(std::array{lstm_output_state, lstm_cell_state}, [&](std::size_t i) {
        return i < op.inputs.size() && std::cmp_equal(op.inputs[i], value) &&
               subgraph_.tensors[value].is_variable;
    });
}

std::string GraphReader::lstm_problem(const Operator& op) const {
    const auto given = options<model::UnidirectionalSequenceLstmOptions>(op);
    if (!given) return given.error();
    const auto& o = *given;
    if (op.inputs.size() != 20 && op.inputs.size() != 24) return shapes_disagree;
    if (o.activation != Activation::tanh) return "its activation is not TANH";
    if (o.diagonal_recurrent_tensors) return "its recurrent weights are diagonal";
    for (const std::size_t i : lstm_extras)
        if (i < op.inputs.size() && op.inputs[i] != model::absent_tensor)
            return "it has peephole connections, a projection or layer normalisation";
    for (std::size_t i = lstm_input_weights; i < lstm_recurrent_weights + 4; ++i)
        if (op.inputs[i] == model::absent_tensor) return "its input and forget gate are coupled";
    if (op.inputs[0] == model::absent_tensor || is_constant(op.inputs[0]))
        return "its input is not computed";
    if (!value(op.inputs[0]).problem.empty()) return value(op.inputs[0]).problem;
    const auto& in = tensor(op.inputs[0]);
    if (in.shape.size() != 3 || in.shape[o.time_major ? 1 : 0] != 1)
        return "its input has several batches";
    for (const std::size_t i : {lstm_output_state, lstm_cell_state})
        if (op.inputs[i] == model::absent_tensor || !tensor(op.inputs[i]).is_variable)
            return "its states are no state tensors";
    return lstm_state_problem(op);
}

std::string GraphReader::lstm_state_problem(const Operator& op) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const auto &hidden = tensor(op.inputs[lstm_output_state]),
               &cell = tensor(op.inputs[lstm_cell_state]), &gives = tensor(op.outputs[0]);
    for (const auto* state : {&hidden, &cell})
        if (state->element_count() != out.channels || state->shape.empty() ||
            state->shape.back() != out.channels)
            return shapes_disagree;
    if (in.height != out.height || in.width != out.width) return shapes_disagree;
    if (in.type != ElementType::int8 || out.type != ElementType::int8 ||
        hidden.type != ElementType::int8 || cell.type != ElementType::int16)
        return "its tensors have not 8 bits and its cell 16";
    if (!cell.quantization || cell.quantization->scale.size() != 1 ||
        !(cell.quantization->scale[0] > 0) ||
        std::ranges::any_of(cell.quantization->zero_point, [](auto zero) { return zero != 0; }))
        return "its cell has not one scale";
    if (!hidden.quantization || hidden.quantization->scale != gives.quantization->scale ||
        hidden.quantization->zero_point != gives.quantization->zero_point)
        return "its output and state have other scales";
    if (op.intermediates.size() > lstm_hidden &&
        op.intermediates[lstm_hidden] != model::absent_tensor) {
        const auto& projected = tensor(op.intermediates[lstm_hidden]).quantization;
        if (!projected || projected->scale != gives.quantization->scale ||
            projected->zero_point != gives.quantization->zero_point)
            return "its hidden value has another scale than its output";
    }
    for (const std::size_t i : {lstm_output_state, lstm_cell_state}) {
        std::size_t uses = 0;
        for (const Operator& other : subgraph_.operators)
            uses += static_cast<std::size_t>(std::ranges::count(other.inputs, op.inputs[i]));
        if (uses != 1) return "another operator reads its state";
    }
    return {};
}

Read GraphReader::lstm(const Operator& op) const {
    if (auto why = lstm_problem(op); !why.empty()) return std::unexpected(std::move(why));
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    Lstm lstm{
        .input = {},
        .recurrent = {},
        .units = out.channels,
        .cell_scale = tensor(op.inputs[lstm_cell_state]).quantization->scale[0],
        .cell_clip = REEF_TRY(options<model::UnidirectionalSequenceLstmOptions>(op)).cell_clip};
    const auto product = [&](std::int32_t channels, std::size_t weights, std::size_t bias) {
        Convolution conv{.window = {},
                         .in_channels = channels,
                         .out_channels = out.channels,
                         .weights = {},
                         .weight_scales = {},
                         .biases = {}};
        const auto& shape = tensor(op.inputs[weights]).shape;
        if (shape != std::vector{out.channels, channels}) return Read(disagree());
        return with_constants(op, std::move(conv), bias, weights);
    };
    for (std::size_t g = 0; g < lstm.input.size(); ++g) {
        auto of_input = product(in.channels, lstm_input_weights + g, lstm_biases + g);
        if (!of_input) return of_input;
        auto of_output = product(out.channels, lstm_recurrent_weights + g, op.inputs.size());
        if (!of_output) return of_output;
        lstm.input[g] = std::get<Convolution>(std::move(*of_input));
        lstm.recurrent[g] = std::get<Convolution>(std::move(*of_output));
        for (const auto* conv : {&lstm.input[g], &lstm.recurrent[g]})
            if (conv->per_channel() || conv->weight_zero != 128)
                return std::unexpected("its weights have not one symmetric scale");
    }
    return lstm;
}

}  // namespace reef::compiler
