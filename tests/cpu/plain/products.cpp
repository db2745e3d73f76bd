// Matrix products and operators with a memory: FULLY_CONNECTED, BATCH_MATMUL, SVDF, LSTM.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/operator_case.h"

namespace reef::plain {
namespace {

using model::Op;

OperatorCase make_fully_connected(Choices& c) {
    const std::int32_t depth = c.pick(1, 40);
    const std::int32_t units = c.pick(1, 20);
    const std::int32_t batches = c.pick(1, 3);
    OperatorCase one{.op = Op::fully_connected};
    const Values in = random_values(c, c.one_of({u8, i8, f32}), {batches, depth});
    Values weights = random_values(c, in.type, {units, depth}, Role::constant);
    Values bias = absent();
    if (in.type == i8) weights.zero = 0;
    if (in.type == i8 && c.one_in(3)) {
        weights.scales.resize(static_cast<std::size_t>(units));
        for (float& scale : weights.scales) scale = static_cast<float>(c.real(0.003, 0.1));
    }
    if (!c.one_in(4)) {
        bias = raw_values(c, in.type == f32 ? f32 : i32, {units}, Role::constant);
        if (in.type != f32)
            for (const float scale : weights.scales) bias.scales.push_back(in.scales[0] * scale);
    }
    const auto activation = random_activation(c);
    one.inputs = {in, weights, bias};
    one.options = model::FullyConnectedOptions{.activation = activation};
    Expected out{.type = in.type, .shape = {batches, units}, .terms = depth + 1.0};
    each_index(out.shape, [&](const Shape& o, std::size_t) {
        const auto unit = static_cast<std::size_t>(o[1]);
        double sum = bias.role == Role::absent ? 0 : bias.real(unit);
        double size = std::abs(sum);
        for (std::int32_t k = 0; k < depth; ++k) {
            const double product = in.real(flat_index(in.shape, {o[0], k})) *
                                   weights.real(flat_index(weights.shape, {o[1], k}));
            sum += product;
            size += std::abs(product);
        }
        out.real.push_back(activated(activation, sum));
        out.magnitude.push_back(size);
    });
    if (in.type != f32) choose_quantisation(c, out, 0.76);
    one.outputs = {out};
    return one;
}

OperatorCase make_batch_matmul(Choices& c) {
    const std::int32_t rows = c.pick(1, 5);
    const std::int32_t depth = c.pick(1, 24);
    const std::int32_t columns = c.pick(1, 5);
    const Shape batches = c.shape(0, 2, 3);
    const model::BatchMatMulOptions options{c.one_in(2), c.one_in(2)};
    const auto with = [&](Shape shape, std::int32_t high, std::int32_t wide, bool swap) {
        for (auto& length : shape)
            if (c.one_in(4)) length = 1;
        shape.insert(shape.end(), {swap ? wide : high, swap ? high : wide});
        return shape;
    };
    const ElementType type = c.one_of({i8, f32});
    const bool first_whole = c.one_in(2);
    Shape a_shape = with(batches, rows, depth, options.adj_x);
    Shape b_shape = with(batches, depth, columns, options.adj_y);
    std::copy(batches.begin(), batches.end(), (first_whole ? a_shape : b_shape).begin());
    const Values a = random_values(c, type, a_shape);
    const Values b = random_values(c, type, b_shape);
    Shape shape = batches;
    shape.insert(shape.end(), {rows, columns});
    Expected out{.type = type, .shape = shape, .terms = static_cast<double>(depth)};
    const auto at = [](const Values& values, const Shape& o, std::int32_t row, std::int32_t column,
                       bool swap) {
        Shape index(o.begin(), o.end() - 2);
        for (std::size_t d = 0; d < index.size(); ++d)
            if (values.shape[d] == 1) index[d] = 0;
        index.insert(index.end(), {swap ? column : row, swap ? row : column});
        return values.real(flat_index(values.shape, index));
    };
    each_index(shape, [&](const Shape& o, std::size_t) {
        double sum = 0, size = 0;
        for (std::int32_t k = 0; k < depth; ++k) {
            const double product =
                at(a, o, o[o.size() - 2], k, options.adj_x) * at(b, o, k, o.back(), options.adj_y);
            sum += product;
            size += std::abs(product);
        }
        out.real.push_back(sum);
        out.magnitude.push_back(size);
    });
    if (type != f32) choose_quantisation(c, out, 0.76);
    return {.op = Op::batch_matmul, .options = options, .inputs = {a, b}, .outputs = {out}};
}

/// The first run: the state is empty, and only the newest time counts.
OperatorCase make_svdf(Choices& c) {
    const std::int32_t batches = c.pick(1, 2);
    const std::int32_t depth = c.pick(1, 12);
    const std::int32_t rank = c.pick(1, 3);
    const std::int32_t units = c.pick(1, 5);
    const std::int32_t memory = c.pick(1, 5);
    const bool floats = c.one_in(2);
    const Values in = random_values(c, floats ? f32 : i8, {batches, depth});
    Values features = random_values(c, in.type, {units * rank, depth}, Role::constant);
    Values time =
        random_values(c, floats ? f32 : ElementType::int16, {units * rank, memory}, Role::constant);
    Values state{.type = time.type, .shape = {batches, units * rank * memory}, .role = Role::state};
    features.zero = 0;
    if (!floats) {
        // The state holds every filter's sum of up to 12 products, and half its steps are lost.
        for (double& value : features.stored) value = std::trunc(value / 8);
        for (double& value : time.stored) value = std::trunc(value / 256);
        state.scales = {in.scales[0] * features.scales[0] * 2};
    }
    const auto activation = floats ? random_activation(c) : model::Activation::relu;
    Expected out{.type = in.type, .shape = {batches, units}, .terms = depth + memory + rank + 1.0};
    double rounding = 0;  // of the state, in real units of the output
    each_index(out.shape, [&](const Shape& o, std::size_t) {
        double sum = 0, size = 0, steps = 0;
        for (std::int32_t r = 0; r < rank; ++r) {
            const std::int32_t filter = o[1] * rank + r;
            const double newest = time.real(flat_index(time.shape, {filter, memory - 1}));
            for (std::int32_t k = 0; k < depth; ++k) {
                const double product = in.real(flat_index(in.shape, {o[0], k})) *
                                       features.real(flat_index(features.shape, {filter, k}));
                sum += product * newest;
                size += std::abs(product * newest);
            }
            if (!floats) steps += std::abs(newest) * static_cast<double>(state.scales[0]);
        }
        out.real.push_back(activated(activation, sum));
        out.magnitude.push_back(size);
        rounding = std::max(rounding, steps);
    });
    if (!floats) {
        choose_quantisation(c, out, 0.76);
        // The activation is the clamp at the type's lowest value.
        out.zero = -128;
        out.steps += rounding * 0.76 / static_cast<double>(out.scale);
    }
    return {.op = Op::svdf,
            .options = model::SvdfOptions{.rank = rank, .activation = activation},
            .inputs = {in, features, time, absent(), state},
            .outputs = {out}};
}

double logistic(double x) {
    return 1 / (1 + std::exp(-x));
}

/// Four gates of an input and of what came out before.
struct Lstm {
    std::array<Values, 4> input, recurrent, bias;
    std::vector<double> output, cell;

    [[nodiscard]] double gate(std::size_t g, std::size_t unit, const std::vector<double>& x) const {
        double sum = bias[g].role == Role::absent ? 0 : bias[g].real(unit);
        for (std::size_t k = 0; k < x.size(); ++k) sum += input[g].real(unit * x.size() + k) * x[k];
        for (std::size_t k = 0; k < output.size(); ++k)
            sum += recurrent[g].real(unit * output.size() + k) * output[k];
        return sum;
    }
    void step(const std::vector<double>& x) {
        std::vector<double> next(output.size());
        for (std::size_t u = 0; u < next.size(); ++u) {
            cell[u] = logistic(gate(1, u, x)) * cell[u] +
                      logistic(gate(0, u, x)) * std::tanh(gate(2, u, x));
            next[u] = logistic(gate(3, u, x)) * std::tanh(cell[u]);
        }
        output = next;
    }
};

Values weights_of(Choices& c, Shape shape) {
    Values weights = random_values(c, i8, std::move(shape), Role::constant);
    weights.zero = 0;
    weights.scales = {static_cast<float>(c.real(0.001, 0.01))};
    return weights;
}

OperatorCase make_lstm(Choices& c) {
    const std::int32_t batches = c.pick(1, 2);
    const std::int32_t steps = c.pick(1, 4);
    const std::int32_t depth = c.pick(1, 8);
    const std::int32_t units = c.pick(1, 6);
    Values in = random_values(c, i8, {batches, steps, depth});
    in.scales = {static_cast<float>(c.real(0.002, 0.02))};
    const float hidden = 1.0F / 128;
    Values output_state{
        .type = i8, .shape = {batches, units}, .scales = {hidden}, .role = Role::state};
    Values cell_state{.type = ElementType::int16,
                      .shape = {batches, units},
                      .scales = {0x1p-11F},
                      .role = Role::state};
    Lstm lstm;
    for (std::size_t g = 0; g < 4; ++g) {
        lstm.input[g] = weights_of(c, {units, depth});
        lstm.recurrent[g] = weights_of(c, {units, units});
        lstm.bias[g] = raw_values(c, i32, {units}, Role::constant);
        lstm.bias[g].scales = {in.scales[0] * lstm.input[g].scales[0]};
    }
    OperatorCase one{.op = Op::unidirectional_sequence_lstm};
    one.options = model::UnidirectionalSequenceLstmOptions{.activation = model::Activation::tanh};
    one.inputs = {in};
    one.inputs.insert(one.inputs.end(), lstm.input.begin(), lstm.input.end());
    one.inputs.insert(one.inputs.end(), lstm.recurrent.begin(), lstm.recurrent.end());
    one.inputs.insert(one.inputs.end(), 3, absent());
    one.inputs.insert(one.inputs.end(), lstm.bias.begin(), lstm.bias.end());
    one.inputs.insert(one.inputs.end(), 2, absent());
    one.inputs.insert(one.inputs.end(), {output_state, cell_state});
    one.inputs.insert(one.inputs.end(), 4, absent());
    for (int i = 0; i < 5; ++i)
        one.intermediates.push_back({.type = i8, .shape = {1}, .scales = {hidden}});
    // Rounded gates, cells and outputs come back in every later step.
    Expected out{.type = i8, .shape = {batches, steps, units}, .scale = hidden, .steps = 2.5};
    for (std::int32_t b = 0; b < batches; ++b) {
        lstm.output.assign(static_cast<std::size_t>(units), 0);
        lstm.cell = lstm.output;
        for (std::int32_t t = 0; t < steps; ++t) {
            std::vector<double> x;
            for (std::int32_t k = 0; k < depth; ++k)
                x.push_back(in.real(flat_index(in.shape, {b, t, k})));
            lstm.step(x);
            out.real.insert(out.real.end(), lstm.output.begin(), lstm.output.end());
        }
    }
    one.outputs = {out};
    return one;
}

constexpr auto products_table = std::to_array<NamedMaker>({
    {Op::fully_connected, make_fully_connected},
    {Op::batch_matmul, make_batch_matmul},
    {Op::svdf, make_svdf},
    {Op::unidirectional_sequence_lstm, make_lstm},
});

}  // namespace

std::span<const NamedMaker> product_makers() {
    return products_table;
}

}  // namespace reef::plain
