// float32 operators without sums of products, and those on bool: the vectorised kernels, the plain
// ones and a memcpy of as many bytes as an operator reads and writes, one thread, the three in turn
// in one process, medians. Tensors that fit the second-level cache, and some that fit none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernel.h"
#include "reef/cpu/placer.h"
#include "reef/model/builder.h"

namespace reef::cpu {
namespace {

using model::Op;
using Shape = std::vector<std::int32_t>;
constexpr auto float32 = ElementType::float32;
constexpr auto boolean = ElementType::boolean;

struct Operand {
    ElementType type = float32;
    Shape shape;
};

struct Case {
    std::string text;
    Op op;
    std::vector<Operand> inputs;
    Operand output;
    model::Options options;
    std::vector<std::int32_t> constant;  ///< the last input, where there is one
};

std::size_t count_of(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}
std::size_t bytes_of(const Operand& operand) {
    return count_of(operand.shape) * *size_of(operand.type);
}

void add_element_wise(std::vector<Case>& cases, std::int32_t length) {
    const Operand floats{float32, {length}}, truths{boolean, {length}};
    const auto text = [&](Op op) { return fmt::format("{} {}", model::builtin_name(op), length); };
    for (const Op op :
         {Op::abs, Op::neg, Op::square, Op::floor, Op::ceil, Op::round, Op::sqrt, Op::rsqrt,
          Op::relu, Op::hard_swish, Op::logistic, Op::tanh, Op::exp, Op::log})
        cases.push_back({text(op), op, {floats}, floats, {}, {}});
    cases.push_back({text(Op::elu), Op::elu, {floats}, floats, {}, {}});
    cases.push_back(
        {text(Op::leaky_relu), Op::leaky_relu, {floats}, floats, model::LeakyReluOptions{}, {}});
    for (const bool approximate : {false, true})
        cases.push_back({text(Op::gelu) + (approximate ? " tanh" : ""),
                         Op::gelu,
                         {floats},
                         floats,
                         model::GeluOptions{approximate},
                         {}});
    for (const Op op : {Op::maximum, Op::minimum, Op::squared_difference})
        cases.push_back({text(op), op, {floats, floats}, floats, {}, {}});
    cases.push_back({text(Op::sub), Op::sub, {floats, floats}, floats, model::SubOptions{}, {}});
    cases.push_back({text(Op::div), Op::div, {floats, floats}, floats, model::DivOptions{}, {}});
    cases.push_back(
        {text(Op::maximum) + " of one", Op::maximum, {floats, {float32, {1}}}, floats, {}, {}});
    for (const Op op : {Op::equal, Op::not_equal, Op::less, Op::less_equal})
        cases.push_back({text(op), op, {floats, floats}, truths, {}, {}});
    cases.push_back(
        {text(Op::less) + " than one", Op::less, {floats, {float32, {1}}}, truths, {}, {}});
    for (const Op op : {Op::logical_and, Op::logical_or})
        cases.push_back({text(op), op, {truths, truths}, truths, {}, {}});
    cases.push_back({text(Op::logical_not), Op::logical_not, {truths}, truths, {}, {}});
    for (const Op op : {Op::select, Op::select_v2})
        cases.push_back({text(op), op, {truths, floats, floats}, floats, {}, {}});
    cases.push_back({text(Op::select_v2) + " of one",
                     Op::select_v2,
                     {truths, floats, {float32, {1}}},
                     floats,
                     {},
                     {}});
}

void add_rows(std::vector<Case>& cases, const Shape& in, std::int32_t axis) {
    Shape rest = in;
    rest.erase(rest.begin() + axis);
    for (const Op op : {Op::arg_max, Op::arg_min})
        cases.push_back(
            {fmt::format("{} {} axis {}", model::builtin_name(op), model::shape_text(in), axis),
             op,
             {{float32, in}},
             {ElementType::int32, rest},
             op == Op::arg_max ? model::Options(model::ArgMaxOptions{ElementType::int32})
                               : model::Options(model::ArgMinOptions{ElementType::int32}),
             {axis}});
}

void add_resize(std::vector<Case>& cases, const Shape& in, std::int32_t height,
                std::int32_t width) {
    cases.push_back(
        {fmt::format("RESIZE_BILINEAR {} to {} x {}", model::shape_text(in), height, width),
         Op::resize_bilinear,
         {{float32, in}},
         {float32, {in[0], height, width, in[3]}},
         model::ResizeBilinearOptions{.align_corners = true},
         {height, width}});
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
                         {float32, {4096, length}},
                         {},
                         {}});
    return cases;
}

[[noreturn]] void stop(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(1);
}

model::Model model_of(const Case& one) {
    model::Builder b(one.text);
    std::vector<model::TensorIndex> inputs;
    for (const Operand& operand : one.inputs)
        inputs.push_back(b.input("in", operand.type, operand.shape));
    if (!one.constant.empty())
        inputs.push_back(b.constant<std::int32_t>(
            "constant", ElementType::int32,
            one.constant.size() == 1 ? Shape{}
                                     : Shape{static_cast<std::int32_t>(one.constant.size())},
            one.constant));
    const auto out = b.tensor("out", one.output.type, one.output.shape);
    b.add(one.op, inputs, {out}, one.options);
    b.output(out);
    auto model = b.finish();
    if (!model) stop(one.text + ": " + model.error().message());
    return std::move(*model);
}

struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte[], AlignedDelete>;
Memory allocate(std::size_t bytes) {
    return Memory(static_cast<std::byte*>(
        ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{64})));
}

/// Ordinary numbers, or truths.
Memory filled(const Operand& operand, std::mt19937& random) {
    Memory memory = allocate(bytes_of(operand));
    std::normal_distribution<float> number(0, 2);
    const bool positive = operand.type == float32;
    for (std::size_t i = 0; i < count_of(operand.shape); ++i) {
        const float value = number(random);
        if (positive)
            std::memcpy(memory.get() + i * sizeof(float), &value, sizeof(float));
        else
            memory[i] = std::byte{value > 0};
    }
    return memory;
}

/// A kernel of the model's operator, and what it runs on.
class Runner {
  public:
    Runner(const model::Model& model, std::vector<std::byte*> inputs, std::byte* output,
           KernelSet kernels)
        : inputs_(std::move(inputs)), outputs_{output} {
        const OperatorView op(model, model.subgraphs[0], 0);
        auto kernel = find_kernel(op.op().code)->prepare(op, {.kernels = kernels});
        if (!kernel) stop(kernel.error().message());
        kernel_ = std::move(*kernel);
        kernel_->pack();
        scratch_ = allocate(kernel_->scratch_bytes());
    }
    [[nodiscard]] std::string name() const { return kernel_->name(); }
    void run() {
        if (!kernel_->run({inputs_, outputs_, {scratch_.get(), kernel_->scratch_bytes()}, pool_}))
            stop("a kernel failed");
    }

  private:
    std::unique_ptr<Kernel> kernel_;
    Memory scratch_;
    std::vector<std::byte*> inputs_, outputs_;
    WorkerPool pool_{1};
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

template <typename Run>
double microseconds(int times, const Run& run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) run();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count() / times;
}

/// Microseconds of one run, of as many as take about a millisecond.
template <typename Run>
double timed(const Run& run) {
    constexpr double turn_us = 1000;
    run();
    const int times = std::clamp(static_cast<int>(turn_us / microseconds(1, run)), 1, 1000);
    return microseconds(times, run);
}

void bench(const Case& one, int rounds) {
    std::mt19937 random(1);
    const model::Model model = model_of(one);
    std::vector<Memory> memory;
    std::vector<std::byte*> inputs;
    std::size_t bytes = bytes_of(one.output);
    for (const Operand& operand : one.inputs) {
        inputs.push_back(memory.emplace_back(filled(operand, random)).get());
        bytes += bytes_of(operand);
    }
    if (!one.constant.empty()) inputs.push_back(nullptr);
    const Memory out = allocate(bytes_of(one.output));
    const Memory from = allocate(bytes / 2), to = allocate(bytes / 2);
    std::memset(from.get(), 1, bytes / 2);
    Runner fast(model, inputs, out.get(), KernelSet::fast);
    Runner plain(model, inputs, out.get(), KernelSet::reference);
    std::vector<double> ours, plains, copies;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(timed([&] { fast.run(); }));
        copies.push_back(timed([&] { std::memcpy(to.get(), from.get(), bytes / 2); }));
        plains.push_back(timed([&] { plain.run(); }));
    }
    const bool alone = fast.name() == plain.name();
    fmt::print("{:44} {:9.1f} {:9.1f} {:9.1f} {:7.3f} {:7.2f}{}\n", one.text, median(ours),
               median(plains), median(copies), median(ours) / median(plains),
               median(ours) / median(copies), alone ? "   no vectorised one" : "");
}

}  // namespace
}  // namespace reef::cpu

int main(int argc, char** argv) {
    const std::string argument = argc == 2 ? argv[1] : "";
    const bool smoke = argument == "--smoke";
    if (argc > 2 || argument.starts_with("-") != smoke) {
        std::cerr << "usage: reef_float_bench [--smoke | PART OF A NAME]\n";
        return 2;
    }
    fmt::print("{:44} {:>9} {:>9} {:>9} {:>7} {:>7}   on {}\n", "operator", "fast us", "plain us",
               "copy us", "/plain", "/copy", reef::cpu::simd_target());
    for (const auto& one : reef::cpu::all_cases())
        if (smoke || one.text.find(argument) != std::string::npos)
            reef::cpu::bench(one, smoke ? 1 : 15);
}
