// Hybrid operators (float32 activations, int8 weights) at sizes that networks have: the vectorised
// kernels, the plain ones and, where its library is, TensorFlow Lite's, one thread, all in turn in
// one process, medians. Outputs that differ in a byte from the plain kernel's, or far from
// TensorFlow Lite's, stop the benchmark.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "peers/tflite_peer.h"
#include "quantile.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/builder.h"

namespace reef::peers {
namespace {

using bench::median;
using cpu::KernelSet;
using graph::Executor;
using model::Op;
using model::TensorIndex;
using Shape = std::vector<std::int32_t>;

constexpr auto f32 = ElementType::float32;

[[noreturn]] void stop(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(1);
}

template <typename T>
T value_or_stop(Result<T> result) {
    if (!result) stop(result.error().message());
    return std::move(*result);
}

std::size_t count_of(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    return count;
}

struct Layer {
    std::string text;
    model::Model model;
};

/// A model of one operator.
class LayerMaker {
  public:
    LayerMaker(std::string text, const Shape& input)
        : text_(std::move(text)), builder_(text_), inputs_{builder_.input("in", f32, input)} {}

    /// `channels`: the axis with a scale for each index; none has one scale. TensorFlow Lite takes
    /// equal ones for one of a CONV_2D, and then for 0.
    LayerMaker& weights(const Shape& shape, std::optional<std::int32_t> channels = {}) {
        model::Quantization q = model::per_tensor(0.004F, 0);
        if (channels) {
            q.axis = *channels;
            const auto count = static_cast<std::size_t>(shape[static_cast<std::size_t>(*channels)]);
            for (std::size_t i = 1; i < count; ++i)
                q.scale.push_back(q.scale[0] * (1 + static_cast<float>(i % 8) / 8));
            q.zero_point.assign(count, 0);
        }
        std::vector<std::int8_t> bytes(count_of(shape));
        for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random_());
        inputs_.push_back(builder_.constant<std::int8_t>("weights", ElementType::int8, shape,
                                                         std::span<const std::int8_t>(bytes), q));
        return *this;
    }
    /// TensorFlow Lite takes no convolution and no LSTM without.
    LayerMaker& bias(std::int32_t channels) {
        const std::vector<float> values(static_cast<std::size_t>(channels), 0.5F);
        inputs_.push_back(
            builder_.constant<float>("bias", f32, {channels}, std::span<const float>(values)));
        return *this;
    }
    LayerMaker& state(const Shape& shape) {
        inputs_.push_back(builder_.variable("state", f32, shape, {}));
        return *this;
    }
    LayerMaker& absent(std::size_t count) {
        inputs_.insert(inputs_.end(), count, model::absent_tensor);
        return *this;
    }
    [[nodiscard]] Layer finish(Op op, const Shape& output, model::Options options) {
        const TensorIndex out = builder_.tensor("out", f32, output);
        builder_.add(op, inputs_, {out}, std::move(options));
        builder_.output(out);
        return {text_, value_or_stop(builder_.finish())};
    }

  private:
    std::string text_;
    model::Builder builder_;
    std::mt19937 random_{1};
    std::vector<TensorIndex> inputs_;
};

Layer conv_2d(std::int32_t size, std::int32_t depth, std::int32_t channels, std::int32_t taps,
              std::int32_t stride = 1) {
    const std::int32_t out = size / stride;
    return LayerMaker(fmt::format("CONV_2D {0} x {0}, {1} to {2}", taps, depth, channels),
                      {1, size, size, depth})
        .weights({channels, taps, taps, depth}, 0)
        .bias(channels)
        .finish(Op::conv_2d, {1, out, out, channels},
                model::Conv2dOptions{.stride_h = stride, .stride_w = stride});
}

Layer depthwise(std::int32_t size, std::int32_t channels) {
    return LayerMaker(fmt::format("DEPTHWISE_CONV_2D 3 x 3, {}", channels),
                      {1, size, size, channels})
        .weights({1, 3, 3, channels}, 3)
        .bias(channels)
        .finish(Op::depthwise_conv_2d, {1, size, size, channels},
                model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1, .depth_multiplier = 1});
}

Layer fully_connected(std::int32_t rows, std::int32_t depth, std::int32_t units) {
    return LayerMaker(fmt::format("FULLY_CONNECTED {} x {} to {}", rows, depth, units),
                      {rows, depth})
        .weights({units, depth})
        .bias(units)
        .finish(Op::fully_connected, {rows, units},
                model::FullyConnectedOptions{.asymmetric_quantize_inputs = true});
}

/// `swapped`: the weights are columns x depth.
Layer batch_matmul(std::int32_t rows, std::int32_t depth, std::int32_t columns, bool swapped) {
    return LayerMaker(fmt::format("BATCH_MATMUL {} x {} to {}{}", rows, depth, columns,
                                  swapped ? ", swapped" : ""),
                      {1, rows, depth})
        .weights(swapped ? Shape{1, columns, depth} : Shape{1, depth, columns})
        .finish(Op::batch_matmul, {1, rows, columns},
                model::BatchMatMulOptions{.adj_y = swapped, .asymmetric_quantize_inputs = true});
}

Layer svdf(std::int32_t depth, std::int32_t filters, std::int32_t rank, std::int32_t memory) {
    const std::int32_t units = filters / rank;
    return LayerMaker(fmt::format("SVDF {} to {}, rank {}, {} steps", depth, units, rank, memory),
                      {1, depth})
        .weights({filters, depth})
        .weights({filters, memory})
        .bias(units)
        .state({1, filters * memory})
        .finish(Op::svdf, {1, units},
                model::SvdfOptions{.rank = rank, .asymmetric_quantize_inputs = true});
}

Layer lstm(std::int32_t steps, std::int32_t depth, std::int32_t units) {
    LayerMaker maker(fmt::format("LSTM {} x {} to {}", steps, depth, units), {1, steps, depth});
    for (int gate = 0; gate < 4; ++gate) maker.weights({units, depth});
    for (int gate = 0; gate < 4; ++gate) maker.weights({units, units});
    maker.absent(3);
    for (int gate = 0; gate < 4; ++gate) maker.bias(units);
    return maker.absent(2)
        .state({1, units})
        .state({1, units})
        .absent(4)
        .finish(Op::unidirectional_sequence_lstm, {1, steps, units},
                model::UnidirectionalSequenceLstmOptions{.activation = model::Activation::tanh,
                                                         .asymmetric_quantize_inputs = true});
}

std::vector<Layer> layers() {
    return {conv_2d(56, 64, 64, 3), conv_2d(28, 128, 256, 1), conv_2d(224, 3, 32, 3, 2),
            depthwise(56, 128), fully_connected(1, 1024, 1000), fully_connected(32, 512, 512),
            // Of text encoders.
            batch_matmul(128, 512, 512, true), batch_matmul(128, 512, 512, false),
            batch_matmul(1, 768, 768, true),
            // Of keyword spotters.
            svdf(40, 1280, 2, 62), svdf(64, 256, 1, 8),
            // Of a text's model, of a frame of speech.
            lstm(16, 256, 256), lstm(1, 320, 1024)};
}

/// Precondition: one input.
void write_input(MutableBytes input) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> number(-1, 3);
    for (std::size_t i = 0; i < input.size(); i += sizeof(float)) {
        const float value = number(random);
        std::memcpy(input.data() + i, &value, sizeof value);
    }
}

template <typename Side>
double microseconds(int times, Side& side) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i)
        if (const Status ran = side.run(); !ran) stop(ran.error().message());
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    return taken.count() / times;
}

/// By a hundredth of the largest value at most: where a float32 is rounded otherwise a value may
/// become the next step.
bool are_near(Bytes ours, Bytes theirs) {
    if (ours.size() != theirs.size()) return false;
    float largest = 0, apart = 0;
    for (std::size_t i = 0; i < ours.size(); i += sizeof(float)) {
        float a = 0, b = 0;
        std::memcpy(&a, ours.data() + i, sizeof a);
        std::memcpy(&b, theirs.data() + i, sizeof b);
        largest = std::max(largest, std::abs(a));
        apart = std::max(apart, std::abs(a - b));
    }
    return apart <= largest / 100;
}

Executor executor_of(const Layer& layer, KernelSet kernels) {
    auto executor = value_or_stop(
        Executor::create(layer.model, {.placers = {cpu::placer({.kernels = kernels})}}));
    write_input(executor.input(0));
    microseconds(1, executor);
    return executor;
}

std::optional<TflitePeer> tflite_of(const Layer& layer, Bytes expected) {
    if (!why_no_tflite().empty()) return std::nullopt;
    auto peer = value_or_stop(TflitePeer::create(layer.model, TfliteKernels::builtin, 1));
    write_input(peer.input(0));
    microseconds(1, peer);
    if (!are_near(expected, peer.output(0)))
        stop(fmt::format("{}: TensorFlow Lite gives something else", layer.text));
    return peer;
}

template <typename Side>
int times_of(Side& side) {
    constexpr double turn_us = 2000;
    return std::clamp(static_cast<int>(turn_us / microseconds(1, side)), 1, 1000);
}

void bench(const Layer& layer, int rounds) {
    Executor fast = executor_of(layer, KernelSet::fast);
    Executor plain = executor_of(layer, KernelSet::reference);
    if (!std::ranges::equal(fast.output(0), plain.output(0)))
        stop(fmt::format("{}: the two differ", layer.text));
    std::optional<TflitePeer> tflite = tflite_of(layer, fast.output(0));
    const int fast_times = times_of(fast), plain_times = times_of(plain);
    const int tflite_times = tflite ? times_of(*tflite) : 0;
    std::vector<double> ours, plains, theirs, to_plain, to_theirs;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(microseconds(fast_times, fast));
        plains.push_back(microseconds(plain_times, plain));
        to_plain.push_back(ours.back() / plains.back());
        if (!tflite) continue;
        theirs.push_back(microseconds(tflite_times, *tflite));
        to_theirs.push_back(ours.back() / theirs.back());
    }
    fmt::print(
        "{:36} {:10.1f} {:10.1f} {:7.3f} {:>10} {:>7}  {}\n", layer.text, median(ours),
        median(plains), median(to_plain), tflite ? fmt::format("{:.1f}", median(theirs)) : "-",
        tflite ? fmt::format("{:.3f}", median(to_theirs)) : "-", fast.placements()[0].kernel);
}

}  // namespace
}  // namespace reef::peers

int main(int argc, char** argv) {
    using namespace reef;
    const bool smoke = argc == 2 && std::string(argv[1]) == "--smoke";
    if (argc > 1 && !smoke) {
        std::cerr << "usage: reef_hybrid_bench [--smoke]\n";
        return 2;
    }
    fmt::print("{:36} {:>10} {:>10} {:>7} {:>10} {:>7}   on {}\n", "hybrid operator", "fast us",
               "plain us", "ratio", "TFLite us", "ratio", cpu::simd_target());
    for (const auto& layer : peers::layers()) peers::bench(layer, smoke ? 1 : 31);
    if (const std::string reason = peers::why_no_tflite(); !reason.empty())
        fmt::print("without TensorFlow Lite: {}\n", reason);
}
