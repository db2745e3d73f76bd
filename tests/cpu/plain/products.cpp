// Matrix products and operators with a memory: FULLY_CONNECTED, BATCH_MATMUL, SVDF, LSTM.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/lstm_inputs.h"
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

/// Four gates of an input and of what came out before. Beside each number stands how large what was
/// added up to it is, each times the weights on its way: what float32 may lose is a share of that.
struct Lstm : LstmConstants {
    struct Number {
        double real = 0, magnitude = 0;
    };
    std::vector<Number> output, cell;

    void begin(std::size_t units) {
        output.assign(units, {});
        cell.assign(units, {});
    }
    [[nodiscard]] Number gate(std::size_t g, std::size_t unit, const std::vector<double>& x) const {
        Number sum;
        sum.real = bias[g].role == Role::absent ? 0 : bias[g].real(unit);
        sum.magnitude = std::abs(sum.real) + 1;
        const auto add = [&](double weight, const Number& factor) {
            sum.real += weight * factor.real;
            sum.magnitude += std::abs(weight) * (std::abs(factor.real) + factor.magnitude);
        };
        for (std::size_t k = 0; k < x.size(); ++k)
            add(input[g].real(unit * x.size() + k), {x[k], 0});
        for (std::size_t k = 0; k < output.size(); ++k)
            add(recurrent[g].real(unit * output.size() + k), output[k]);
        return sum;
    }
    void step(const std::vector<double>& x) {
        std::vector<Number> next(output.size());
        for (std::size_t u = 0; u < next.size(); ++u) {
            const Number in = gate(0, u, x), forget = gate(1, u, x), candidate = gate(2, u, x),
                         out = gate(3, u, x);
            Number& c = cell[u];
            c.magnitude +=
                std::abs(c.real) * (forget.magnitude + 1) + in.magnitude + candidate.magnitude;
            c.real = logistic(forget.real) * c.real + logistic(in.real) * std::tanh(candidate.real);
            next[u] = {logistic(out.real) * std::tanh(c.real), c.magnitude + out.magnitude};
        }
        output = next;
    }
};

/// Sums of some units, so that gates are neither open nor shut.
Values weights_of(Choices& c, ElementType type, Shape shape) {
    Values weights = random_values(c, type, std::move(shape), Role::constant);
    if (type == f32) {
        for (double& value : weights.stored)
            value = static_cast<double>(static_cast<float>(value / 8));
        return weights;
    }
    weights.zero = 0;
    weights.scales = {static_cast<float>(c.real(0.001, 0.01))};
    return weights;
}

OperatorCase make_lstm(Choices& c) {
    const std::int32_t batches = c.pick(1, 2);
    const std::int32_t steps = c.pick(1, 4);
    const std::int32_t depth = c.pick(1, 8);
    const std::int32_t units = c.pick(1, 6);
    const bool floats = c.one_in(2), time_major = c.one_in(2);
    const ElementType type = floats ? f32 : i8;
    const Shape order = time_major ? Shape{steps, batches} : Shape{batches, steps};
    Values in = random_values(c, type, {order[0], order[1], depth});
    Values output_state{.type = type, .shape = {batches, units}, .role = Role::state};
    Values cell_state{.type = floats ? f32 : i16, .shape = {batches, units}, .role = Role::state};
    Expected out{.type = type,
                 .shape = {order[0], order[1], units},
                 .terms = static_cast<double>(depth + units + 8)};
    OperatorCase one{.op = Op::unidirectional_sequence_lstm};
    if (!floats) {
        in.scales = {static_cast<float>(c.real(0.002, 0.02))};
        output_state.scales = {1.0F / 128};
        cell_state.scales = {0x1p-11F};
        out.scale = output_state.scales[0];
        // Rounded gates, cells and outputs come back in every later step.
        out.steps = 2.5;
        one.intermediates.assign(5, {.type = i8, .shape = {1}, .scales = output_state.scales});
    }
    Lstm lstm;
    for (std::size_t g = 0; g < 4; ++g) {
        lstm.input[g] = weights_of(c, type, {units, depth});
        lstm.recurrent[g] = weights_of(c, type, {units, units});
        lstm.bias[g] = raw_values(c, floats ? f32 : i32, {units}, Role::constant);
        if (!floats) lstm.bias[g].scales = {in.scales[0] * lstm.input[g].scales[0]};
        if (c.one_in(8)) lstm.bias[g] = absent();
    }
    one.options = model::UnidirectionalSequenceLstmOptions{.activation = model::Activation::tanh,
                                                           .time_major = time_major};
    one.inputs = lstm_inputs(in, lstm, output_state, cell_state);
    out.real.resize(count_of(out.shape));
    out.magnitude.resize(out.real.size());
    for (std::int32_t b = 0; b < batches; ++b) {
        lstm.begin(static_cast<std::size_t>(units));
        for (std::int32_t t = 0; t < steps; ++t) {
            const auto at = [&](std::int32_t k) {
                return time_major ? Shape{t, b, k} : Shape{b, t, k};
            };
            std::vector<double> x;
            for (std::int32_t k = 0; k < depth; ++k)
                x.push_back(in.real(flat_index(in.shape, at(k))));
            lstm.step(x);
            for (std::int32_t u = 0; u < units; ++u) {
                const std::size_t place = flat_index(out.shape, at(u));
                out.real[place] = lstm.output[static_cast<std::size_t>(u)].real;
                out.magnitude[place] = lstm.output[static_cast<std::size_t>(u)].magnitude;
            }
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
