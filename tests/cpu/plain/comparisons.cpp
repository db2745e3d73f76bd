// Operators of truth values: what holds of two numbers, of two truths, and what is chosen by them.
#include <array>

#include "cpu/plain/operator_case.h"

namespace reef::plain {
namespace {

using model::Op;
using Holds = bool (*)(double, double);

/// Values of a few kinds each, so that some are equal.
OperatorCase compared(Choices& c, Op op, Holds holds, std::initializer_list<ElementType> types) {
    const ElementType type = c.one_of(types);
    const Shape shape = c.shape(0, 4, 5);
    const bool first_whole = c.one_in(2);
    OperatorCase one{.op = op};
    one.inputs = {raw_values(c, type, first_whole ? shape : part_of(c, shape)),
                  raw_values(c, type, first_whole ? part_of(c, shape) : shape,
                             c.one_in(3) ? Role::constant : Role::input)};
    if (type != b8)
        for (Values& values : one.inputs)
            for (double& value : values.stored)
                if (c.one_in(2)) value = c.pick(-1, 1);
    const Values &a = one.inputs[0], &b = one.inputs[1];
    Expected& out = one.outputs.emplace_back(Expected{.type = b8, .shape = shape});
    each_index(shape, [&](const Shape& index, std::size_t) {
        out.real.push_back(holds(a.stored[broadcast_index(a.shape, index)],
                                 b.stored[broadcast_index(b.shape, index)])
                               ? 1
                               : 0);
    });
    return one;
}

OperatorCase make_equal(Choices& c) {
    return compared(c, Op::equal, [](double a, double b) { return a == b; }, {b8, i32, i64, f32});
}
OperatorCase make_not_equal(Choices& c) {
    return compared(c, Op::not_equal, [](double a, double b) { return a != b; },
                    {b8, i32, i64, f32});
}
OperatorCase make_less(Choices& c) {
    return compared(c, Op::less, [](double a, double b) { return a < b; }, {i32, i64, f32});
}
OperatorCase make_less_equal(Choices& c) {
    return compared(c, Op::less_equal, [](double a, double b) { return a <= b; }, {i32, i64, f32});
}
OperatorCase make_greater(Choices& c) {
    return compared(c, Op::greater, [](double a, double b) { return a > b; }, {i32, i64, f32});
}
OperatorCase make_greater_equal(Choices& c) {
    return compared(c, Op::greater_equal, [](double a, double b) { return a >= b; },
                    {i32, i64, f32});
}
OperatorCase make_logical_and(Choices& c) {
    return compared(c, Op::logical_and, [](double a, double b) { return a + b == 2; }, {b8});
}
OperatorCase make_logical_or(Choices& c) {
    return compared(c, Op::logical_or, [](double a, double b) { return a + b > 0; }, {b8});
}
OperatorCase make_logical_not(Choices& c) {
    const Values in = raw_values(c, b8, c.shape(0, 4, 6));
    Expected out{.type = b8, .shape = in.shape};
    for (const double value : in.stored) out.real.push_back(1 - value);
    return {.op = Op::logical_not, .inputs = {in}, .outputs = {out}};
}

/// What the condition at `which(index)` chooses.
template <typename Which>
Expected chosen(const OperatorCase& one, const Shape& shape, const Which& which) {
    const Values &a = one.inputs[1], &b = one.inputs[2];
    Expected out = stored_like(a, shape);
    each_index(shape, [&](const Shape& index, std::size_t at) {
        out.real[at] = one.inputs[0].stored[which(index)] != 0
                           ? a.stored[broadcast_index(a.shape, index)]
                           : b.stored[broadcast_index(b.shape, index)];
    });
    return out;
}

OperatorCase choice(Choices& c, Op op, const Shape& which, const Shape& a, const Shape& b) {
    const ElementType type = c.one_of({b8, u8, i8, i16, i32, i64, f32});
    OperatorCase one{.op = op};
    one.inputs = {
        raw_values(c, b8, which), random_values(c, type, a),
        random_values(c, type, b, count_of(b) > 0 && c.one_in(3) ? Role::constant : Role::input)};
    one.inputs[2].scales = one.inputs[1].scales;
    one.inputs[2].zero = one.inputs[1].zero;
    return one;
}

OperatorCase make_select(Choices& c) {
    const Shape shape = c.shape_or_empty(1, 6, 3);
    const std::int32_t kind = c.pick(0, 2);
    OperatorCase one = choice(c, Op::select,
                              kind == 0   ? shape
                              : kind == 1 ? Shape{shape[0]}
                                          : Shape{},
                              shape, shape);
    one.outputs = {chosen(one, shape, [&](const Shape& index) -> std::size_t {
        if (kind == 0) return flat_index(shape, index);
        return kind == 1 ? static_cast<std::size_t>(index[0]) : 0;
    })};
    return one;
}

OperatorCase make_select_v2(Choices& c) {
    const Shape shape = c.shape_or_empty(0, 6, 3);
    std::array<Shape, 3> shapes{part_of(c, shape), part_of(c, shape), part_of(c, shape)};
    shapes[static_cast<std::size_t>(c.pick(0, 2))] = shape;
    OperatorCase one = choice(c, Op::select_v2, shapes[0], shapes[1], shapes[2]);
    one.outputs = {
        chosen(one, shape, [&](const Shape& index) { return broadcast_index(shapes[0], index); })};
    return one;
}

constexpr auto comparison_table = std::to_array<NamedMaker>({
    {Op::equal, make_equal},
    {Op::not_equal, make_not_equal},
    {Op::less, make_less},
    {Op::less_equal, make_less_equal},
    {Op::greater, make_greater},
    {Op::greater_equal, make_greater_equal},
    {Op::logical_and, make_logical_and},
    {Op::logical_or, make_logical_or},
    {Op::logical_not, make_logical_not},
    {Op::select, make_select},
    {Op::select_v2, make_select_v2},
});

}  // namespace

std::span<const NamedMaker> comparison_makers() {
    return comparison_table;
}

}  // namespace reef::plain
