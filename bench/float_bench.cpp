// float32 operators without sums of products, and those on bool (operators/measure.h). Tensors that
// fit the second-level cache, and some that fit none.
#include <fmt/format.h>

#include <vector>

#include "operators/measure.h"

namespace reef::cpu {
namespace {

using model::Op;
using Shape = std::vector<std::int32_t>;
constexpr auto float32 = ElementType::float32;
constexpr auto boolean = ElementType::boolean;

void add_element_wise(std::vector<Case>& cases, std::int32_t length) {
    const Operand floats{float32, {length}}, truths{boolean, {length}}, one{float32, {1}};
    const auto add = [&](Op op, std::vector<Operand> inputs, const Operand& output,
                         const char* note = "", model::Options options = {}) {
        cases.push_back({fmt::format("{} {}{}", model::builtin_name(op), length, note),
                         op,
                         std::move(inputs),
                         {output},
                         std::move(options)});
    };
    for (const Op op :
         {Op::abs, Op::neg, Op::square, Op::floor, Op::ceil, Op::round, Op::sqrt, Op::rsqrt,
          Op::relu, Op::hard_swish, Op::logistic, Op::tanh, Op::exp, Op::log, Op::elu})
        add(op, {floats}, floats);
    add(Op::leaky_relu, {floats}, floats, "", model::LeakyReluOptions{});
    add(Op::gelu, {floats}, floats, "", model::GeluOptions{false});
    add(Op::gelu, {floats}, floats, " tanh", model::GeluOptions{true});
    for (const Op op : {Op::maximum, Op::minimum, Op::squared_difference})
        add(op, {floats, floats}, floats);
    add(Op::sub, {floats, floats}, floats, "", model::SubOptions{});
    add(Op::div, {floats, floats}, floats, "", model::DivOptions{});
    add(Op::maximum, {floats, one}, floats, " of one");
    for (const Op op : {Op::equal, Op::not_equal, Op::less, Op::less_equal})
        add(op, {floats, floats}, truths);
    add(Op::less, {floats, one}, truths, " than one");
    for (const Op op : {Op::logical_and, Op::logical_or}) add(op, {truths, truths}, truths);
    add(Op::logical_not, {truths}, truths);
    for (const Op op : {Op::select, Op::select_v2}) add(op, {truths, floats, floats}, floats);
    add(Op::select_v2, {truths, floats, one}, floats, " of one");
}

void add_rows(std::vector<Case>& cases, const Shape& in, std::int32_t axis) {
    Shape rest = in;
    rest.erase(rest.begin() + axis);
    for (const Op op : {Op::arg_max, Op::arg_min})
        cases.push_back(
            {fmt::format("{} {} axis {}", model::builtin_name(op), model::shape_text(in), axis),
             op,
             {{float32, in}, constant_of({axis})},
             {{ElementType::int32, rest}},
             op == Op::arg_max ? model::Options(model::ArgMaxOptions{ElementType::int32})
                               : model::Options(model::ArgMinOptions{ElementType::int32})});
}

void add_resize(std::vector<Case>& cases, const Shape& in, std::int32_t height,
                std::int32_t width) {
    cases.push_back(
        {fmt::format("RESIZE_BILINEAR {} to {} x {}", model::shape_text(in), height, width),
         Op::resize_bilinear,
         {{float32, in}, constant_of({height, width})},
         {{float32, {in[0], height, width, in[3]}}},
         model::ResizeBilinearOptions{.align_corners = true}});
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const std::int32_t length : {1 << 14, 1 << 22}) add_element_wise(cases, length);
    add_rows(cases, {1, 513, 513, 21}, 3);
    add_rows(cases, {1, 64, 64, 3}, 3);
    add_rows(cases, {1, 21, 513, 513}, 1);
    add_rows(cases, {1, 1001}, 1);
    for (const std::int32_t channels : {1, 3, 4, 5, 6, 7, 8, 12, 16, 21, 64})
        add_resize(cases, {1, 65, 65, channels}, 513, 513);
    add_resize(cases, {1, 1, 1, 256}, 65, 65);
    add_resize(cases, {1, 480, 640, 3}, 224, 224);
    for (const std::int32_t length : {21, 1001})
        cases.push_back({fmt::format("LOG_SOFTMAX of {}", length),
                         Op::log_softmax,
                         {{float32, {4096, length}}},
                         {{float32, {4096, length}}}});
    return cases;
}

}  // namespace
}  // namespace reef::cpu

int main(int argc, char** argv) {
    return reef::cpu::measure(argc, argv, "float32 operators without sums of products",
                              reef::cpu::all_cases(), {});
}
