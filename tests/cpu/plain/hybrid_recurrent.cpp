// SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM of float32 activations and states and int8 weights.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/hybrid_steps.h"
#include "cpu/plain/lstm_inputs.h"

namespace reef::plain {
namespace {

using model::Op;

/// Of an index of the weights' rows: the sum of steps times weights, in real numbers.
double product_of(const Steps& steps, const Values& weights, std::size_t row) {
    double sum = 0;
    for (std::size_t k = 0; k < steps.values.size(); ++k)
        sum += steps.values[k] * weights.stored[row * steps.values.size() + k];
    return sum * steps.scale * static_cast<double>(weights.scales[0]);
}

/// The first run: the state is empty, and only the newest time counts.
OperatorCase make_hybrid_svdf(Choices& c) {
    const std::int32_t batches = c.pick(1, 3), depth = c.pick(1, 20), rank = c.pick(1, 3);
    const std::int32_t units = c.pick(1, 6), memory = c.pick(1, 6);
    const bool asymmetric = c.one_in(2);
    const Values in = hybrid_input(c, {batches, depth}, batches);
    const Values features = hybrid_weights(c, {units * rank, depth});
    const Values time = hybrid_weights(c, {units * rank, memory});
    const Values bias = c.one_in(2) ? absent() : raw_values(c, f32, {units}, Role::constant);
    const Values state{.type = f32, .shape = {batches, units * rank * memory}, .role = Role::state};
    const auto activation = random_activation(c);
    const auto rows = steps_of_rows(in, static_cast<std::size_t>(depth), asymmetric);
    // Of a feature three roundings, of a weight over time one.
    Expected out{.type = f32, .shape = {batches, units}, .terms = memory + rank + 5.0};
    each_index(out.shape, [&](const Shape& o, std::size_t) {
        double sum = bias.role == Role::absent ? 0 : bias.real(static_cast<std::size_t>(o[1]));
        double size = std::abs(sum);
        for (std::int32_t r = 0; r < rank; ++r) {
            const std::int32_t filter = o[1] * rank + r;
            const double product = product_of(rows[static_cast<std::size_t>(o[0])], features,
                                              static_cast<std::size_t>(filter)) *
                                   time.real(flat_index(time.shape, {filter, memory - 1}));
            sum += product;
            size += std::abs(product);
        }
        out.real.push_back(activated(activation, sum));
        out.magnitude.push_back(size);
    });
    return {.op = Op::svdf,
            .options = model::SvdfOptions{.rank = rank,
                                          .activation = activation,
                                          .asymmetric_quantize_inputs = asymmetric},
            .inputs = {in, features, time, bias, state},
            .outputs = {out}};
}

double opened(std::size_t gate, double x) {
    return gate == 2 ? std::tanh(x) : 1 / (1 + std::exp(-x));
}

/// Four gates of an input and of what came out before. What float32 may lose is `unit` times a
/// number's magnitude; where that decides to which step an output goes, a step may be lost, too.
struct HybridLstm : LstmConstants {
    struct Number {
        double real = 0, magnitude = 0;
    };
    bool asymmetric = false;
    double unit = 0, clip = 0;
    std::vector<Number> output, cell;

    void begin(std::size_t units) {
        output.assign(units, {});
        cell.assign(units, {});
    }
    [[nodiscard]] double largest_magnitude() const {
        return std::ranges::max(output, {}, &Number::magnitude).magnitude;
    }
    [[nodiscard]] Number gate(std::size_t g, std::size_t u, const Steps& in,
                              const Steps& before) const {
        const double added = bias[g].role == Role::absent ? 0 : bias[g].real(u);
        const double from_input = product_of(in, input[g], u);
        const double from_output = product_of(before, recurrent[g], u);
        Number sum{added + from_input + from_output,
                   1 + std::abs(added) + std::abs(from_input) + std::abs(from_output)};
        for (std::size_t k = 0; k < output.size(); ++k) {
            const double weight = std::abs(recurrent[g].real(u * output.size() + k));
            const double step = before.unsure[k] ? before.scale / unit : 0;
            sum.magnitude += weight * (largest_magnitude() + step);
        }
        return {opened(g, sum.real), sum.magnitude};
    }
    void step(std::span<const double> x) {
        std::vector<double> reals;
        for (const Number& number : output) reals.push_back(number.real);
        const Steps in = steps_of(x, asymmetric);
        const Steps before = steps_of(reals, asymmetric, unit * largest_magnitude());
        std::vector<Number> next(output.size());
        for (std::size_t u = 0; u < next.size(); ++u) {
            std::array<Number, 4> gates;
            for (std::size_t g = 0; g < 4; ++g) gates[g] = gate(g, u, in, before);
            Number& c = cell[u];
            c.magnitude += std::abs(c.real) * (gates[1].magnitude + 1) + gates[0].magnitude +
                           gates[2].magnitude;
            c.real = gates[1].real * c.real + gates[0].real * gates[2].real;
            if (clip > 0) c.real = std::clamp(c.real, -clip, clip);
            next[u] = {gates[3].real * std::tanh(c.real), c.magnitude + gates[3].magnitude};
        }
        output = next;
    }
};

/// Sums of some units, so that gates are neither open nor shut.
Values gate_weights(Choices& c, Shape shape) {
    Values weights = hybrid_weights(c, std::move(shape));
    weights.scales = {static_cast<float>(c.real(0.001, 0.01))};
    return weights;
}

OperatorCase make_hybrid_lstm(Choices& c) {
    const std::int32_t batches = c.pick(1, 3), steps = c.pick(1, 5);
    const std::int32_t depth = c.pick(1, 12), units = c.pick(1, 9);
    const model::UnidirectionalSequenceLstmOptions options{
        .activation = model::Activation::tanh,
        .cell_clip = c.one_in(4) ? 0.5F : 0.0F,
        .time_major = c.one_in(2),
        .asymmetric_quantize_inputs = c.one_in(2)};
    const Shape order = options.time_major ? Shape{steps, batches} : Shape{batches, steps};
    const Values in = hybrid_input(c, {order[0], order[1], depth}, batches * steps);
    const Values state{.type = f32, .shape = {batches, units}, .role = Role::state};
    Expected out{.type = f32,
                 .shape = {order[0], order[1], units},
                 .terms = static_cast<double>(depth + units + 8)};
    HybridLstm lstm;
    lstm.asymmetric = options.asymmetric_quantize_inputs;
    lstm.unit = 0x1p-24 * out.terms;
    lstm.clip = static_cast<double>(options.cell_clip);
    for (std::size_t g = 0; g < 4; ++g) {
        lstm.input[g] = gate_weights(c, {units, depth});
        lstm.recurrent[g] = gate_weights(c, {units, units});
        lstm.bias[g] = c.one_in(8) ? absent() : raw_values(c, f32, {units}, Role::constant);
    }
    out.real.resize(count_of(out.shape));
    out.magnitude.resize(out.real.size());
    for (std::int32_t b = 0; b < batches; ++b) {
        lstm.begin(static_cast<std::size_t>(units));
        for (std::int32_t t = 0; t < steps; ++t) {
            const auto row =
                static_cast<std::size_t>(options.time_major ? t * batches + b : b * steps + t);
            const auto width = static_cast<std::size_t>(depth);
            lstm.step(std::span(in.stored).subspan(row * width, width));
            for (std::size_t u = 0; u < lstm.output.size(); ++u) {
                out.real[row * lstm.output.size() + u] = lstm.output[u].real;
                out.magnitude[row * lstm.output.size() + u] = lstm.output[u].magnitude;
            }
        }
    }
    return {.op = Op::unidirectional_sequence_lstm,
            .options = options,
            .inputs = lstm_inputs(in, lstm, state, state),
            .outputs = {out}};
}

constexpr auto hybrid_recurrent_table = std::to_array<NamedMaker>({
    {Op::svdf, make_hybrid_svdf},
    {Op::unidirectional_sequence_lstm, make_hybrid_lstm},
});

}  // namespace

std::span<const NamedMaker> hybrid_recurrent_makers() {
    return hybrid_recurrent_table;
}

}  // namespace reef::plain
