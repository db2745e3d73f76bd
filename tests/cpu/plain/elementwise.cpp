// Operators whose output element depends on one element of each input.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/operator_case.h"
#include "cpu/prepare/kernels.h"

namespace reef::plain {
namespace {

using model::Op;

using Binary = double (*)(double, double);

struct BinaryForm {
    Op op;
    Binary function;
    double steps = 0;        ///< of quantised outputs
    bool as_stored = false;  ///< all have one quantisation, and stored values are compared
    bool whole_divisor = false;
};

/// Fills the output with the function's values.
void apply(OperatorCase& one, const Shape& shape, const BinaryForm& form,
           model::Activation activation) {
    const Values& a = one.inputs[0];
    const Values& b = one.inputs[1];
    Expected& out = one.outputs.emplace_back(Expected{.type = a.type, .shape = shape});
    each_index(shape, [&](const Shape& index, std::size_t) {
        const std::size_t i = broadcast_index(a.shape, index);
        const std::size_t j = broadcast_index(b.shape, index);
        const double value = form.as_stored ? form.function(a.stored[i], b.stored[j])
                                            : form.function(a.real(i), b.real(j));
        out.real.push_back(activated(activation, value));
    });
}

OperatorCase binary(Choices& choices, const BinaryForm& form,
                    std::initializer_list<ElementType> types) {
    OperatorCase one{.op = form.op};
    const ElementType type = choices.one_of(types);
    const Shape shape = choices.shape(0, 4, 5);
    const bool first_whole = choices.one_in(2);
    one.inputs.push_back(
        random_values(choices, type, first_whole ? shape : part_of(choices, shape)));
    one.inputs.push_back(random_values(choices, type, first_whole ? part_of(choices, shape) : shape,
                                       choices.one_in(3) ? Role::constant : Role::input));
    Shape out = one.inputs[first_whole ? 0 : 1].shape;
    Values& b = one.inputs[1];
    if (form.whole_divisor) {
        for (double& value : b.stored)
            if (std::abs(value) < 0.01) value = 1;
    }
    if (form.as_stored && is_quantised(type)) {
        b.scales = one.inputs[0].scales;
        b.zero = one.inputs[0].zero;
    }
    const auto activation =
        form.steps > 0 || form.op == Op::div ? random_activation(choices) : model::Activation::none;
    if (form.op == Op::add) one.options = model::AddOptions{.activation = activation};
    if (form.op == Op::sub) one.options = model::SubOptions{.activation = activation};
    if (form.op == Op::mul) one.options = model::MulOptions{.activation = activation};
    if (form.op == Op::div) one.options = model::DivOptions{.activation = activation};
    const bool fused =
        form.op == Op::add || form.op == Op::sub || form.op == Op::mul || form.op == Op::div;
    apply(one, out, form, fused ? activation : model::Activation::none);
    if (!is_quantised(type)) return one;
    if (form.as_stored) {
        one.outputs[0].scale = b.scales[0];
        one.outputs[0].zero = b.zero;
    } else {
        choose_quantisation(choices, one.outputs[0], form.steps);
    }
    return one;
}

double add(double a, double b) {
    return a + b;
}
double subtract(double a, double b) {
    return a - b;
}
double multiply(double a, double b) {
    return a * b;
}
double divide(double a, double b) {
    return a / b;
}
double larger(double a, double b) {
    return std::max(a, b);
}
double smaller(double a, double b) {
    return std::min(a, b);
}
double squared_difference(double a, double b) {
    return (a - b) * (a - b);
}
double floor_quotient(double a, double b) {
    // fmod is exact, where the quotient of large numbers is not.
    const double rest = std::fmod(a, b);
    return std::round((a - rest) / b) - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
}
double floor_rest(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

OperatorCase make_add(Choices& c) {
    return binary(c, {Op::add, add, 0.51}, {u8, i8, i32, i64, f32});
}
OperatorCase make_sub(Choices& c) {
    return binary(c, {Op::sub, subtract, 0.51}, {u8, i8, i32, i64, f32});
}
OperatorCase make_mul(Choices& c) {
    return binary(c, {Op::mul, multiply, 0.76}, {u8, i8, i32, f32});
}
OperatorCase make_div(Choices& c) {
    return binary(c, {.op = Op::div, .function = divide, .whole_divisor = true}, {f32});
}
OperatorCase make_maximum(Choices& c) {
    return binary(c, {.op = Op::maximum, .function = larger, .as_stored = true},
                  {u8, i8, i32, i64, f32});
}
OperatorCase make_minimum(Choices& c) {
    return binary(c, {.op = Op::minimum, .function = smaller, .as_stored = true},
                  {u8, i8, i32, i64, f32});
}
/// The inputs are rounded to 2^-7 of twice the larger scale before they are squared.
/// Of positive numbers, which have powers of any exponent.
OperatorCase make_pow(Choices& c) {
    const auto power = [](double a, double b) { return std::pow(a, b); };
    OperatorCase one = binary(c, {.op = Op::pow, .function = power}, {f32});
    for (double& value : one.inputs[0].stored)
        value = static_cast<double>(static_cast<float>(std::abs(value) + 0.001));
    const Shape shape = one.outputs[0].shape;
    one.outputs.clear();
    apply(one, shape, {.op = Op::pow, .function = power}, model::Activation::none);
    return one;
}
OperatorCase make_squared_difference(Choices& c) {
    OperatorCase one =
        binary(c, {Op::squared_difference, squared_difference, 0.76}, {i8, i32, f32});
    Expected& out = one.outputs[0];
    if (out.type != i8) return one;
    const float larger_scale = std::max(one.inputs[0].scales[0], one.inputs[1].scales[0]);
    const double rounding = static_cast<double>(larger_scale) * 2 / 128;
    const double distance = std::sqrt(std::ranges::max(out.real));
    out.steps += (2 * distance + rounding) * rounding / static_cast<double>(out.scale);
    return one;
}
OperatorCase make_floor_div(Choices& c) {
    return binary(c, {.op = Op::floor_div, .function = floor_quotient, .whole_divisor = true},
                  {i32, f32});
}
OperatorCase make_floor_mod(Choices& c) {
    return binary(c, {.op = Op::floor_mod, .function = floor_rest, .whole_divisor = true},
                  {i32, i64, f32});
}
OperatorCase make_prelu(Choices& c) {
    const auto function = [](double x, double slope) { return x >= 0 ? x : x * slope; };
    OperatorCase one{.op = Op::prelu};
    const ElementType type = c.one_of({u8, i8, f32});
    const Shape shape = c.shape(2, 4, 5);
    Shape slopes = shape;
    slopes.erase(slopes.begin());
    for (std::size_t d = 0; d + 1 < slopes.size(); ++d) slopes[d] = 1;
    one.inputs = {random_values(c, type, shape), random_values(c, type, slopes, Role::constant)};
    apply(one, shape, {Op::prelu, function}, model::Activation::none);
    if (is_quantised(type)) choose_quantisation(c, one.outputs[0], 0.76);
    return one;
}

using Unary = double (*)(double);

OperatorCase unary(Choices& choices, Op op, Unary function, double steps,
                   std::initializer_list<ElementType> types) {
    OperatorCase one{.op = op};
    const Shape shape = choices.shape(1, 4, 6);
    const Values& in =
        one.inputs.emplace_back(random_values(choices, choices.one_of(types), shape));
    Expected& out = one.outputs.emplace_back(Expected{.type = in.type, .shape = shape});
    for (std::size_t i = 0; i < in.stored.size(); ++i) out.real.push_back(function(in.real(i)));
    if (is_quantised(in.type)) choose_quantisation(choices, out, steps);
    return one;
}

OperatorCase make_relu(Choices& c) {
    return unary(c, Op::relu, [](double x) { return std::max(x, 0.0); }, 0.76, {u8, i8, i16, f32});
}
OperatorCase make_relu6(Choices& c) {
    return unary(c, Op::relu6, [](double x) { return std::clamp(x, 0.0, 6.0); }, 0.76,
                 {u8, i8, i16, f32});
}
OperatorCase make_relu_n1_to_1(Choices& c) {
    return unary(c, Op::relu_n1_to_1, [](double x) { return std::clamp(x, -1.0, 1.0); }, 0.76,
                 {u8, i8, i16, f32});
}
OperatorCase make_sin(Choices& c) {
    return unary(c, Op::sin, [](double x) { return std::sin(x); }, 0, {f32});
}
OperatorCase make_cos(Choices& c) {
    return unary(c, Op::cos, [](double x) { return std::cos(x); }, 0, {f32});
}

OperatorCase make_abs(Choices& c) {
    return unary(c, Op::abs, [](double x) { return std::abs(x); }, 0, {f32});
}
OperatorCase make_neg(Choices& c) {
    return unary(c, Op::neg, [](double x) { return -x; }, 0, {i32, i64, f32});
}
OperatorCase make_square(Choices& c) {
    return unary(c, Op::square, [](double x) { return x * x; }, 0, {f32});
}
OperatorCase make_exp(Choices& c) {
    return unary(c, Op::exp, [](double x) { return std::exp(x); }, 0, {f32});
}
OperatorCase make_floor(Choices& c) {
    return unary(c, Op::floor, [](double x) { return std::floor(x); }, 0, {f32});
}
OperatorCase make_ceil(Choices& c) {
    return unary(c, Op::ceil, [](double x) { return std::ceil(x); }, 0, {f32});
}
/// Some are halves.
OperatorCase make_round(Choices& c) {
    OperatorCase one = unary(c, Op::round, [](double x) { return x; }, 0, {f32});
    Values& in = one.inputs[0];
    for (std::size_t i = 0; i < in.stored.size(); ++i) {
        if (c.one_in(2)) in.stored[i] = std::round(in.stored[i] * 2) / 2;
        const double below = std::floor(in.stored[i]), rest = in.stored[i] - below;
        const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2) != 0);
        one.outputs[0].real[i] = up ? below + 1 : below;
    }
    return one;
}
OperatorCase make_elu(Choices& c) {
    return unary(c, Op::elu, [](double x) { return x < 0 ? std::exp(x) - 1 : x; }, 0, {f32});
}
OperatorCase make_gelu(Choices& c) {
    const bool approximate = c.one_in(2);
    const auto exact_form = [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); };
    const auto approximate_form = [](double x) {
        return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    };
    OperatorCase one = approximate ? unary(c, Op::gelu, approximate_form, 0, {f32})
                                   : unary(c, Op::gelu, exact_form, 0, {f32});
    one.options = model::GeluOptions{approximate};
    return one;
}

/// The output's quantisation is the operator's, not the model's.
OperatorCase with_fixed_output(OperatorCase one, float scale, std::int64_t unsigned_zero,
                               double steps) {
    Expected& out = one.outputs[0];
    if (!is_quantised(out.type)) return one;
    out.scale = scale;
    out.zero = out.type == u8 ? unsigned_zero : unsigned_zero - 128;
    out.steps = steps;
    return one;
}

OperatorCase make_logistic(Choices& c) {
    return with_fixed_output(
        unary(c, Op::logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, 0, {u8, i8, f32}),
        1.0F / 256, 0, 0.51);
}
OperatorCase make_tanh(Choices& c) {
    return with_fixed_output(
        unary(c, Op::tanh, [](double x) { return std::tanh(x); }, 0, {u8, i8, f32}), 1.0F / 128,
        128, 0.51);
}
OperatorCase make_leaky_relu(Choices& c) {
    const auto alpha = static_cast<float>(c.real(-1, 1));
    OperatorCase one = unary(c, Op::leaky_relu, [](double x) { return x; }, 0.76, {u8, i8, f32});
    one.options = model::LeakyReluOptions{alpha};
    for (double& x : one.outputs[0].real) x = x >= 0 ? x : x * static_cast<double>(alpha);
    return one;
}

/// Finer outputs than inputs leave fewer bits of 16 than a step of theirs.
OperatorCase make_hard_swish(Choices& c) {
    OperatorCase one =
        unary(c, Op::hard_swish, [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }, 0.76,
              {u8, i8, f32});
    if (is_quantised(one.inputs[0].type))
        one.outputs[0].scale = std::max(one.outputs[0].scale, one.inputs[0].scales[0] / 2);
    return one;
}

/// Inputs that are not negative.
void make_positive(Values& values) {
    if (values.type == f32) {
        for (double& x : values.stored)
            x = static_cast<double>(static_cast<float>(std::abs(x) + 0.001));
    } else {
        values.zero = -128;
    }
}

OperatorCase root(Choices& c, Op op, Unary function, std::initializer_list<ElementType> types) {
    OperatorCase one = unary(
        c, op, [](double x) { return x; }, 0.76, types);
    Values& in = one.inputs[0];
    make_positive(in);
    for (double& x : in.stored) x = in.type == i8 ? std::max(x, -127.0) : x;
    for (std::size_t i = 0; i < in.stored.size(); ++i)
        one.outputs[0].real[i] = function(in.real(i));
    if (is_quantised(in.type)) choose_quantisation(c, one.outputs[0], 0.76);
    return one;
}
OperatorCase make_sqrt(Choices& c) {
    return root(c, Op::sqrt, [](double x) { return std::sqrt(x); }, {f32});
}
OperatorCase make_rsqrt(Choices& c) {
    return root(c, Op::rsqrt, [](double x) { return 1 / std::sqrt(x); }, {i8, f32});
}

OperatorCase make_log(Choices& c) {
    return root(c, Op::log, [](double x) { return std::log(x); }, {f32});
}

/// Moves some values of a QUANTIZE to where they round one way or the other: one rounding decides.
void move_beside_middles(Choices& c, OperatorCase& one) {
    Values& in = one.inputs[0];
    Expected& out = one.outputs[0];
    for (std::size_t i = 0; i < in.stored.size(); ++i) {
        if (c.one_in(2)) continue;
        const double scale = static_cast<double>(out.scale);
        const double middle = std::round(in.stored[i] / scale) + 0.5;
        auto beside = static_cast<float>(middle * scale);
        const float towards = static_cast<float>(c.pick(-1, 1)) * 1e9F;
        if (c.one_in(2)) beside = std::nextafter(beside, towards);
        in.stored[i] = out.real[i] = static_cast<double>(beside);
    }
    // The rest is what float64 leaves of the quotient.
    out.steps = 0.5 + 1e-9;
}

OperatorCase make_quantize(Choices& c) {
    OperatorCase one = unary(c, Op::quantize, [](double x) { return x; }, 0, {f32, u8, i8, i16});
    Expected& out = one.outputs[0];
    const bool wide = one.inputs[0].type == i16;
    out.type = wide                        ? c.one_of({i8, i16})
               : one.inputs[0].type == f32 ? c.one_of({u8, i8, i16})
                                           : c.one_of({u8, i8});
    choose_quantisation(c, out, 0.76);
    if (one.inputs[0].type == f32) move_beside_middles(c, one);
    return one;
}
OperatorCase make_dequantize(Choices& c) {
    OperatorCase one = unary(c, Op::dequantize, [](double x) { return x; }, 0, {f16, u8, i8, i16});
    Values& in = one.inputs[0];
    if ((in.type == u8 || in.type == i8) && c.one_in(2)) {
        const auto axis = c.pick(0, static_cast<std::int32_t>(in.shape.size()) - 1);
        const auto channels = static_cast<std::size_t>(in.shape[static_cast<std::size_t>(axis)]);
        in.axis = axis;
        in.zero = 0;
        in.scales.clear();
        for (std::size_t i = 0; i < channels; ++i)
            in.scales.push_back(static_cast<float>(c.real(0.003, 0.1)));
    }
    Expected& out = one.outputs[0];
    out = {.type = f32, .shape = out.shape};
    for (std::size_t i = 0; i < in.stored.size(); ++i) out.real.push_back(in.real(i));
    return one;
}
/// A number with a fraction becomes 32 bits, or 64 where the type has them; outside of them it is
/// the lowest. More bits than the type has are lost.
double cast_of(double x, ElementType from, ElementType to) {
    if (to == f32) return static_cast<double>(static_cast<float>(x));
    const double end = to == i64 ? 0x1p63 : 0x1p31;
    double whole = std::trunc(x);
    if (from == f32 && !(whole >= -end && whole < end)) whole = -end;
    if (to == i64) return whole;
    const double values = to == i32 ? 0x1p32 : to == i16 ? 0x1p16 : 0x1p8;
    const double lowest = to == u8 ? 0 : -values / 2;
    return whole - values * std::floor((whole - lowest) / values);
}
OperatorCase make_cast(Choices& c) {
    OperatorCase one{.op = Op::cast};
    const ElementType from = c.one_of({f32, i8, i16, i32, i64, u8});
    const ElementType to = c.one_of({f32, i8, i16, i32, i64, u8});
    const Shape shape = c.shape(1, 3, 6);
    Values& in = one.inputs.emplace_back(raw_values(c, from, shape));
    if (from == f32 && c.pick(0, 1) == 1)
        for (double& x : in.stored) x = std::ldexp(x, static_cast<int>(c.pick(0, 80)));
    one.options = model::CastOptions{from, to};
    Expected& out = one.outputs.emplace_back(Expected{.type = to, .shape = shape});
    for (const double x : in.stored) out.real.push_back(cast_of(x, from, to));
    return one;
}

constexpr auto elementwise_table = std::to_array<NamedMaker>({
    {Op::add, make_add},
    {Op::sub, make_sub},
    {Op::mul, make_mul},
    {Op::div, make_div},
    {Op::maximum, make_maximum},
    {Op::minimum, make_minimum},
    {Op::squared_difference, make_squared_difference},
    {Op::pow, make_pow},
    {Op::abs, make_abs},
    {Op::neg, make_neg},
    {Op::square, make_square},
    {Op::exp, make_exp},
    {Op::log, make_log},
    {Op::floor, make_floor},
    {Op::ceil, make_ceil},
    {Op::round, make_round},
    {Op::elu, make_elu},
    {Op::gelu, make_gelu},
    {Op::floor_div, make_floor_div},
    {Op::floor_mod, make_floor_mod},
    {Op::prelu, make_prelu},
    {Op::relu, make_relu},
    {Op::relu6, make_relu6},
    {Op::relu_n1_to_1, make_relu_n1_to_1},
    {Op::leaky_relu, make_leaky_relu},
    {Op::hard_swish, make_hard_swish},
    {Op::sin, make_sin},
    {Op::cos, make_cos},
    {Op::logistic, make_logistic},
    {Op::tanh, make_tanh},
    {Op::sqrt, make_sqrt},
    {Op::rsqrt, make_rsqrt},
    {Op::quantize, make_quantize},
    {Op::dequantize, make_dequantize},
    {Op::cast, make_cast},
});

}  // namespace

std::span<const NamedMaker> elementwise_makers() {
    return elementwise_table;
}

}  // namespace reef::plain
