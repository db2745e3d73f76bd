// Hybrid operators (float32 activations, int8 weights): the vectorised kernels against the plain
// ones, one thread, the two in turn in one process, medians. Outputs that differ in a byte stop the
// benchmark.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
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

struct Layer {
    const char* text;
    Op op;
    std::vector<std::int32_t> input, filter, output;
    std::int32_t stride = 1;
};

const Layer layers[] = {
    {"CONV_2D 3 x 3", Op::conv_2d, {1, 56, 56, 64}, {64, 3, 3, 64}, {1, 56, 56, 64}},
    {"CONV_2D 1 x 1", Op::conv_2d, {1, 28, 28, 128}, {256, 1, 1, 128}, {1, 28, 28, 256}},
    {"CONV_2D 3 x 3 of 3, /2", Op::conv_2d, {1, 224, 224, 3}, {32, 3, 3, 3}, {1, 112, 112, 32}, 2},
    {"DEPTHWISE_CONV_2D 3 x 3",
     Op::depthwise_conv_2d,
     {1, 56, 56, 128},
     {1, 3, 3, 128},
     {1, 56, 56, 128}},
    {"FULLY_CONNECTED, one row", Op::fully_connected, {1, 1024}, {1000, 1024}, {1, 1000}},
    {"FULLY_CONNECTED, 32 rows", Op::fully_connected, {32, 512}, {512, 512}, {32, 512}},
};

[[noreturn]] void stop(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(1);
}

std::size_t count_of(const std::vector<std::int32_t>& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}

model::Options options_of(const Layer& layer) {
    constexpr auto same = model::Padding::same;
    if (layer.op == Op::fully_connected)
        return model::FullyConnectedOptions{.asymmetric_quantize_inputs = true};
    if (layer.op == Op::conv_2d)
        return model::Conv2dOptions{
            .padding = same, .stride_h = layer.stride, .stride_w = layer.stride};
    return model::DepthwiseConv2dOptions{
        .padding = same, .stride_h = layer.stride, .stride_w = layer.stride, .depth_multiplier = 1};
}

model::Model model_of(const Layer& layer, std::mt19937& random) {
    model::Builder b(layer.text);
    model::Quantization q;
    q.scale.assign(
        layer.op == Op::fully_connected ? 1 : static_cast<std::size_t>(layer.output.back()), 0.01F);
    q.zero_point.assign(q.scale.size(), 0);
    q.axis = layer.op == Op::depthwise_conv_2d ? 3 : 0;
    std::vector<std::int8_t> weights(count_of(layer.filter));
    for (std::int8_t& weight : weights) weight = static_cast<std::int8_t>(random());
    const auto in = b.input("in", ElementType::float32, layer.input);
    const auto constant = b.constant<std::int8_t>("weights", ElementType::int8, layer.filter,
                                                  std::span<const std::int8_t>(weights), q);
    const auto out = b.tensor("out", ElementType::float32, layer.output);
    b.add(layer.op, {in, constant}, {out}, options_of(layer));
    b.output(out);
    auto model = b.finish();
    if (!model) stop(model.error().message());
    return std::move(*model);
}

struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte[], AlignedDelete>;
Memory allocate(std::size_t bytes) {
    return Memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
}

/// A kernel of the model's operator, and what it runs on.
class Runner {
  public:
    Runner(const model::Model& model, const Layer& layer, std::byte* input, KernelSet kernels)
        : out_bytes_(count_of(layer.output) * sizeof(float)), out_(allocate(out_bytes_)) {
        const OperatorView op(model, model.subgraphs[0], 0);
        auto kernel = find_kernel(op.op().code)->prepare(op, {.kernels = kernels});
        if (!kernel) stop(kernel.error().message());
        kernel_ = std::move(*kernel);
        kernel_->pack();
        scratch_ = allocate(std::max<std::size_t>(kernel_->scratch_bytes(), 1));
        inputs_[0] = input;
        outputs_[0] = out_.get();
    }
    void run() {
        if (!kernel_->run({inputs_, outputs_, {scratch_.get(), kernel_->scratch_bytes()}, pool_}))
            stop("a kernel failed");
    }
    [[nodiscard]] std::span<const std::byte> output() const { return {out_.get(), out_bytes_}; }

  private:
    std::unique_ptr<Kernel> kernel_;
    std::size_t out_bytes_;
    Memory out_, scratch_;
    std::byte* inputs_[3] = {};
    std::byte* outputs_[1] = {};
    WorkerPool pool_{1};
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

double microseconds(int times, Runner& runner) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) runner.run();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count() / times;
}

void bench(const Layer& layer, int rounds) {
    std::mt19937 random(1);
    const model::Model model = model_of(layer, random);
    std::vector<float> input(count_of(layer.input));
    std::uniform_real_distribution<float> number(-1, 3);
    for (float& value : input) value = number(random);
    auto* bytes = reinterpret_cast<std::byte*>(input.data());
    Runner fast(model, layer, bytes, KernelSet::fast);
    Runner plain(model, layer, bytes, KernelSet::reference);
    fast.run();
    plain.run();
    if (!std::ranges::equal(fast.output(), plain.output()))
        stop(fmt::format("{}: the two differ", layer.text));
    constexpr double turn_us = 2000;
    const int times = std::clamp(static_cast<int>(turn_us / microseconds(1, fast)), 1, 1000);
    std::vector<double> ours, theirs, ratios;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(microseconds(times, fast));
        theirs.push_back(microseconds(1, plain));
        ratios.push_back(ours.back() / theirs.back());
    }
    fmt::print("{:26} {:10.1f} {:10.1f} {:7.3f}\n", layer.text, median(ours), median(theirs),
               median(ratios));
}

}  // namespace
}  // namespace reef::cpu

int main(int argc, char** argv) {
    const bool smoke = argc == 2 && std::string(argv[1]) == "--smoke";
    if (argc > 1 && !smoke) {
        std::cerr << "usage: reef_hybrid_bench [--smoke]\n";
        return 2;
    }
    fmt::print("{:26} {:>10} {:>10} {:>7}   on {}\n", "hybrid operator", "fast us", "plain us",
               "ratio", reef::cpu::simd_target());
    for (const auto& layer : reef::cpu::layers) reef::cpu::bench(layer, smoke ? 1 : 31);
}
