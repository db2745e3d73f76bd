// Operators over axes and rows: means, sums, extremes, the largest elements, softmax, lengths.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cpu/plain/operator_case.h"

namespace reef::plain {
namespace {

using model::Op;

struct Reduction {
    OperatorCase one = {};
    Shape kept = {};  ///< the shape with length 1 along reduced axes
    double count = 1;
    std::vector<bool> reduced = {};
};

Reduction start(Choices& c, Op op, ElementType type) {
    Reduction r{.one = {.op = op}};
    const Shape shape = c.shape(1, 4, 6);
    r.reduced.assign(shape.size(), false);
    std::vector<std::int32_t> axes;
    const bool image = shape.size() == 4 && c.one_in(2);
    const auto rank = static_cast<std::int32_t>(shape.size());
    for (std::int32_t d = 0; d < rank; ++d) {
        if (image ? d != 1 && d != 2 : !c.one_in(2)) continue;
        r.reduced[static_cast<std::size_t>(d)] = true;
        axes.push_back(c.one_in(4) ? d - rank : d);
    }
    if (axes.empty()) {
        axes.push_back(0);
        r.reduced[0] = true;
    }
    const bool keep = c.one_in(2);
    r.one.inputs = {random_values(c, type, shape), numbers(axes)};
    r.one.options = model::ReducerOptions{keep};
    Expected& out = r.one.outputs.emplace_back(Expected{.type = type});
    for (std::size_t d = 0; d < shape.size(); ++d) {
        r.kept.push_back(r.reduced[d] ? 1 : shape[d]);
        if (r.reduced[d]) r.count *= shape[d];
        if (!r.reduced[d] || keep) out.shape.push_back(r.kept.back());
    }
    out.terms = r.count + 2;
    return r;
}

/// `take(output element, input element)` for every input element.
template <typename Take>
void each_input(const Reduction& r, const Take& take) {
    each_index(r.one.inputs[0].shape, [&](Shape index, std::size_t at) {
        for (std::size_t d = 0; d < index.size(); ++d)
            if (r.reduced[d]) index[d] = 0;
        take(flat_index(r.kept, index), at);
    });
}

Reduction sums(Choices& c, Op op, std::initializer_list<ElementType> types) {
    Reduction r = start(c, op, c.one_of(types));
    Values& in = r.one.inputs[0];
    // Sums of int16 wrap in int16: these do not.
    if (op == Op::sum && in.type == i16)
        for (double& value : in.stored) value = std::trunc(value / 2048);
    Expected& out = r.one.outputs[0];
    out.real.assign(count_of(r.kept), 0);
    out.magnitude.assign(out.real.size(), 0);
    each_input(r, [&](std::size_t to, std::size_t from) {
        out.real[to] += in.real(from);
        out.magnitude[to] += std::abs(in.real(from));
    });
    return r;
}

OperatorCase make_sum(Choices& c) {
    Reduction r = sums(c, Op::sum, {u8, i8, i16, i32, i64, f32});
    Expected& out = r.one.outputs[0];
    if (!is_quantised(out.type)) return std::move(r.one);
    if (out.type == i16) {
        // TFLite sums int16 in the input's scale only.
        out.scale = r.one.inputs[0].scales[0];
        out.steps = 0.51;
        return std::move(r.one);
    }
    // Wide enough that nothing wraps, which TFLite does where others clamp.
    choose_quantisation(c, out, 1.01);
    out.scale *= 4;
    const auto [low, high] = range_of(out.type);
    out.zero = static_cast<std::int64_t>((low + high + 1) / 2);
    return std::move(r.one);
}

OperatorCase make_mean(Choices& c) {
    Reduction r = sums(c, Op::mean, {u8, i8, i16, i32, i64, f32});
    Expected& out = r.one.outputs[0];
    const Values& in = r.one.inputs[0];
    for (double& value : out.real) value /= r.count;
    for (double& value : out.magnitude) value /= r.count;
    if (is_quantised(out.type)) {
        choose_quantisation(c, out, 1.51);
        if (c.one_in(3)) {
            out.scale = in.scales[0];
            out.zero = in.zero;
        }
    } else if (out.type != f32) {
        for (double& value : out.real) value = std::trunc(value);
    }
    return std::move(r.one);
}

OperatorCase extreme(Choices& c, Op op, bool largest) {
    Reduction r = start(c, op, c.one_of({u8, i8, i16, i32, i64, f32}));
    const Values& in = r.one.inputs[0];
    const Expected& shaped = r.one.outputs[0];
    Expected out = stored_like(in, shaped.shape);
    std::vector<bool> seen(out.real.size());
    each_input(r, [&](std::size_t to, std::size_t from) {
        const double value = in.stored[from];
        if (!seen[to] || (largest ? value > out.real[to] : value < out.real[to]))
            out.real[to] = value;
        seen[to] = true;
    });
    r.one.outputs = {out};
    return std::move(r.one);
}
OperatorCase make_reduce_max(Choices& c) {
    return extreme(c, Op::reduce_max, true);
}
OperatorCase make_reduce_min(Choices& c) {
    return extreme(c, Op::reduce_min, false);
}

OperatorCase index_of_best(Choices& c, Op op, bool (*beats)(double, double)) {
    const Values in = random_values(c, c.one_of({u8, i8, i32, f32}), c.shape(1, 4, 6));
    const auto rank = static_cast<std::int32_t>(in.shape.size());
    const std::int32_t axis = c.pick(-rank, rank - 1);
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    const ElementType type = c.one_of({i32, i64});
    Expected out{.type = type, .shape = in.shape};
    out.shape.erase(out.shape.begin() + static_cast<std::ptrdiff_t>(along));
    each_index(out.shape, [&](Shape index, std::size_t) {
        index.insert(index.begin() + static_cast<std::ptrdiff_t>(along), 0);
        std::int32_t best = 0;
        double most = in.stored[flat_index(in.shape, index)];
        for (std::int32_t i = 1; i < in.shape[along]; ++i) {
            index[along] = i;
            const double value = in.stored[flat_index(in.shape, index)];
            if (beats(value, most)) {
                best = i;
                most = value;
            }
        }
        out.real.push_back(best);
    });
    return {.op = op,
            .options = model::ArgMaxOptions{type},
            .inputs = {in, numbers({axis})},
            .outputs = {out}};
}

OperatorCase make_arg_max(Choices& c) {
    return index_of_best(c, Op::arg_max, [](double a, double b) { return a > b; });
}

OperatorCase make_arg_min(Choices& c) {
    OperatorCase one = index_of_best(c, Op::arg_min, [](double a, double b) { return a < b; });
    one.options = model::ArgMinOptions{one.outputs[0].type};
    return one;
}

OperatorCase make_topk_v2(Choices& c) {
    const Values in = random_values(c, c.one_of({u8, i8, i32, i64, f32}), c.shape(1, 3, 8));
    const auto length = static_cast<std::size_t>(in.shape.back());
    const auto k = static_cast<std::size_t>(c.pick(1, in.shape.back()));
    Shape shape = in.shape;
    shape.back() = static_cast<std::int32_t>(k);
    Expected values = stored_like(in, shape);
    Expected places{.type = i32, .shape = shape};
    values.real.clear();
    for (std::size_t row = 0; row < in.stored.size(); row += length) {
        std::vector<std::size_t> order(length);
        std::iota(order.begin(), order.end(), row);
        std::ranges::stable_sort(
            order, [&](std::size_t a, std::size_t b) { return in.stored[a] > in.stored[b]; });
        for (std::size_t i = 0; i < k; ++i) {
            values.real.push_back(in.stored[order[i]]);
            places.real.push_back(static_cast<double>(order[i] - row));
        }
    }
    Values count = numbers({static_cast<std::int32_t>(k)});
    count.shape = {};
    return {.op = Op::topk_v2, .inputs = {in, count}, .outputs = {values, places}};
}

OperatorCase make_softmax(Choices& c) {
    const Values in = random_values(c, c.one_of({u8, i8, f32}), c.shape(1, 4, 12));
    const auto beta = static_cast<float>(c.real(0.1, 2));
    const auto length = static_cast<std::size_t>(in.shape.back());
    Expected out{.type = in.type, .shape = in.shape};
    for (std::size_t row = 0; row < in.stored.size(); row += length) {
        double most = in.real(row);
        for (std::size_t i = 0; i < length; ++i) most = std::max(most, in.real(row + i));
        double sum = 0;
        for (std::size_t i = 0; i < length; ++i)
            sum += std::exp(static_cast<double>(beta) * (in.real(row + i) - most));
        for (std::size_t i = 0; i < length; ++i)
            out.real.push_back(std::exp(static_cast<double>(beta) * (in.real(row + i) - most)) /
                               sum);
    }
    // Results of a row add up to 1.
    out.magnitude.assign(out.real.size(), 1);
    out.terms = static_cast<double>(length) + 2;
    if (is_quantised(in.type)) {
        out.scale = 1.0F / 256;
        out.zero = in.type == u8 ? 0 : -128;
        out.steps = 0.76;
    }
    return {.op = Op::softmax,
            .options = model::SoftmaxOptions{beta},
            .inputs = {in},
            .outputs = {out}};
}

OperatorCase make_log_softmax(Choices& c) {
    const Values in = random_values(c, f32, c.shape(1, 4, 12));
    const auto length = static_cast<std::size_t>(in.shape.back());
    Expected out{.type = f32, .shape = in.shape};
    for (std::size_t row = 0; row < in.stored.size(); row += length) {
        double sum = 0;
        for (std::size_t i = 0; i < length; ++i) sum += std::exp(in.real(row + i));
        for (std::size_t i = 0; i < length; ++i)
            out.real.push_back(in.real(row + i) - std::log(sum));
    }
    // The sum's rounding is that of its logarithm; the difference to the largest is rounded, too.
    for (const double value : out.real) out.magnitude.push_back(1 + std::abs(value));
    out.terms = static_cast<double>(length) + 2;
    return {.op = Op::log_softmax, .inputs = {in}, .outputs = {out}};
}

OperatorCase make_l2_normalization(Choices& c) {
    const Values in = random_values(c, c.one_of({u8, i8, f32}), c.shape(1, 3, 10));
    const auto length = static_cast<std::size_t>(in.shape.back());
    Expected out{.type = in.type, .shape = in.shape};
    for (std::size_t row = 0; row < in.stored.size(); row += length) {
        double squares = 0;
        for (std::size_t i = 0; i < length; ++i) squares += in.real(row + i) * in.real(row + i);
        const double root = std::max(std::sqrt(squares), 1e-6);
        for (std::size_t i = 0; i < length; ++i) out.real.push_back(in.real(row + i) / root);
    }
    for (const double value : out.real) out.magnitude.push_back(std::abs(value));
    out.terms = static_cast<double>(length) + 2;
    if (is_quantised(in.type)) {
        out.scale = 1.0F / 128;
        out.zero = in.type == u8 ? 128 : 0;
        out.steps = 0.76;
    }
    return {.op = Op::l2_normalization, .inputs = {in}, .outputs = {out}};
}

constexpr auto reductions_table = std::to_array<NamedMaker>({
    {Op::sum, make_sum},
    {Op::mean, make_mean},
    {Op::reduce_max, make_reduce_max},
    {Op::reduce_min, make_reduce_min},
    {Op::arg_max, make_arg_max},
    {Op::arg_min, make_arg_min},
    {Op::topk_v2, make_topk_v2},
    {Op::softmax, make_softmax},
    {Op::log_softmax, make_log_softmax},
    {Op::l2_normalization, make_l2_normalization},
});

}  // namespace

std::span<const NamedMaker> reduction_makers() {
    return reductions_table;
}

}  // namespace reef::plain
