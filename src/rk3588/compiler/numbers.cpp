// Constants of operators in the terms of the chip: from scales, zero points and activations.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "rk3588/compiler/elements.h"
#include "rk3588/compiler/functions.h"
#include "rk3588/compiler/lowering.h"
#include "rk3588/compiler/weights.h"

namespace reef::rk3588::lowering {
namespace {

using compiler::Activation;
using compiler::Graph;
using compiler::Node;
using compiler::Value;

ConvolutionShape images_of(const Graph& graph, const Node& node) {
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    ConvolutionShape s;
    s.height = in.height;
    s.width = in.width;
    s.channels = in.channels;
    s.out_height = out.height;
    s.out_width = out.width;
    s.out_channels = out.channels;
    return s;
}

std::vector<double> multipliers_of(const Value& in, const Value& out,
                                   const compiler::Convolution& conv) {
    std::vector<double> all;
    for (const float scale : conv.weight_scales)
        all.push_back(static_cast<double>(in.scale) * static_cast<double>(scale) /
                      static_cast<double>(out.scale));
    return all;
}

/// With each input as large or as small as its weight's sign wants it.
Reach reach_of(const WeightSum& weights, std::int32_t input_zero, std::int64_t bias) {
    const std::int64_t above = (weights.magnitude + weights.sum) / 2,
                       below = (weights.magnitude - weights.sum) / 2;
    const std::int64_t most = 127 - input_zero, least = -128 - input_zero;
    return {above * most - below * least + bias, -(above * least - below * most + bias)};
}

/// TFLite's second rounding sees only the bits that its first one left, so that results a little
/// below a half go up: by about the accumulator's last bit. One rounding of a result that is never
/// below its zero point does so with one more in the bias.
std::int32_t second_rounding(double multiplier, const Requantisation& r, const Range& range,
                             const Options& options) {
    const bool once = !r.factors.empty() && r.powers.empty();
    const bool wanted = options.requant == Options::Requant::tflite && range.low >= r.zero;
    constexpr double shifted = 0.5;
    return once && wanted && multiplier < shifted ? 1 : 0;
}

bool fits32(std::int64_t value) {
    return value >= std::numeric_limits<std::int32_t>::min() &&
           value <= std::numeric_limits<std::int32_t>::max();
}

/// The average of uint8 values, a half upwards: of twice the sum, and one more where there are
/// halves. Without the fraction it is that of the sum less half of what the pixels divide by.
PoolNumbers average_of_bytes(const ConvolutionShape& s, std::int32_t pixels, bool downwards) {
    PoolNumbers pool;
    pool.weight = 2;
    pool.numbers.requantisation = two_factors(1.0 / (2.0 * pixels));
    pool.numbers.requantisation.zero = -128;
    const std::int32_t moved = downwards ? 1 - pixels : pixels % 2 == 0 ? 1 : 0;
    const std::int32_t bias = 2 * 128 * pixels + moved;
    pool.numbers.biases.assign(static_cast<std::size_t>(s.out_channels), bias);
    return pool;
}

/// The average of int8 values, a half away from `middle`: a scale that is a little too large. No
/// constants of the chip drop the fraction on both sides of zero: of those values the average is
/// rounded, too, and 1 apart from TFLite's at most.
PoolNumbers average_of_signed(const ConvolutionShape& s, std::int32_t pixels, std::int32_t middle) {
    PoolNumbers pool;
    auto& r = pool.numbers.requantisation;
    if (pixels % 2 != 0) {
        r = two_factors(1.0 / pixels);
    } else {
        const auto nearest = nearest_scale(1.0 / pixels);
        r.shift = nearest.shift;
        r.scale = static_cast<std::int32_t>(std::floor(std::ldexp(1.0 / pixels, r.shift))) + 1;
    }
    r.zero = middle;
    pool.numbers.biases.assign(static_cast<std::size_t>(s.out_channels), -middle * pixels);
    return pool;
}

/// The average of int8 values without its fraction, by a table that takes the sum nearer to zero by
/// half of what the pixels divide by.
std::optional<PoolNumbers> average_towards_zero(const ConvolutionShape& s, std::int32_t pixels) {
    auto truncation = truncation_of(pixels);
    if (!truncation) return std::nullopt;
    PoolNumbers pool;
    auto& r = pool.numbers.requantisation;
    r.scale = truncation->converter.scale;
    r.shift = truncation->converter.shift;
    pool.numbers.biases.assign(static_cast<std::size_t>(s.out_channels), 0);
    pool.tables = std::move(truncation->tables);
    return pool;
}

PoolNumbers average_of(const ConvolutionShape& s, std::int32_t pixels, const Value& value,
                       compiler::AveragePool::Rounding rounding, const Options& options) {
    using Rounding = compiler::AveragePool::Rounding;
    if (options.assume_sumlut && value.type == ElementType::int8 &&
        rounding == Rounding::towards_zero)
        if (auto pool = average_towards_zero(s, pixels)) return std::move(*pool);
    if (value.type == ElementType::uint8)
        return average_of_bytes(s, pixels, rounding == Rounding::towards_zero);
    return average_of_signed(s, pixels,
                             rounding == Rounding::half_away_from_zero_point ? zero_of(value) : 0);
}

}  // namespace

ConvolutionShape shape_of(const Graph& graph, const Node& node, const compiler::Convolution& conv) {
    ConvolutionShape s = images_of(graph, node);
    s.window = conv.window;
    s.depthwise = conv.depthwise;
    return s;
}

ConvolutionShape shape_of(const Graph& graph, const Node& node, const compiler::AveragePool& pool) {
    ConvolutionShape s = images_of(graph, node);
    s.window = pool.window;
    s.depthwise = true;
    return s;
}

std::optional<Range> range_of(Activation activation, const Value& out) {
    constexpr float six = 6;
    const std::int32_t zero = zero_of(out);
    if (activation == Activation::none) return Range{};
    if (activation != Activation::relu && activation != Activation::relu6) return std::nullopt;
    Range range{std::max(-128, zero), 127};
    if (activation == Activation::relu6) {
        const double steps = std::min(1e6, std::round(static_cast<double>(six / out.scale)));
        range.high = std::min(127, zero + static_cast<std::int32_t>(steps));
    }
    return range;
}

std::optional<compiler::Convolution> with_fine_biases(const compiler::Convolution& of_graph,
                                                      const Value& in) {
    if (of_graph.offsets.empty()) return std::nullopt;
    compiler::Convolution conv = of_graph;
    constexpr std::int32_t parts = 64;
    const std::vector<std::byte> weights(conv.weights.size(), std::byte(conv.weight_zero + parts));
    const double step =
        static_cast<double>(in.scale) * static_cast<double>(conv.weight_scales[0]) / parts;
    conv.weights = SharedBytes::copy_of(weights);
    conv.weight_scales[0] /= parts;
    for (std::size_t c = 0; c < conv.biases.size(); ++c)
        conv.biases[c] = static_cast<std::int32_t>(
            std::clamp(std::nearbyint(conv.offsets[c] / step), -0x1p30, 0x1p30));
    conv.offsets.clear();
    return conv;
}

Or<Numbers> numbers_of(const Graph& graph, const Node& node, const compiler::Convolution& conv,
                       const Options& options) {
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    const auto range = range_of(conv.activation, out);
    if (!range) return std::unexpected("its activation is none of RELU and RELU6");
    const auto multipliers = multipliers_of(in, out, conv);
    const std::int32_t zero = zero_of(out);
    const ResultRange results{range->low - zero, range->high - zero};
    auto r = requantisation_of(multipliers, options, results);
    if (!r) return std::unexpected("its scales have no constants on this chip");
    Numbers n;
    n.requantisation = std::move(*r);
    n.requantisation.zero = zero_of(out);
    limit(n.requantisation, range->low, range->high);
    n.input_zero = zero_of(in);
    n.weight_zero = conv.weight_zero - 128;
    const auto sums = weight_sums(conv);
    for (std::size_t c = 0; c < sums.size(); ++c) {
        const double multiplier = multipliers[multipliers.size() == 1 ? 0 : c];
        const Reach reach = reach_of(sums[c], n.input_zero, conv.biases[c]);
        if (largest_error(n.requantisation, c, multiplier, reach, results) >
            most_error(options.requant))
            return std::unexpected(
                fmt::format("its scales lie too far apart for one converter: results of channel {} "
                            "could be more than a step off",
                            c));
        const std::int64_t bias = conv.biases[c] - std::int64_t{n.input_zero} * sums[c].sum +
                                  second_rounding(multiplier, n.requantisation, *range, options);
        if (!fits32(bias)) return std::unexpected("a bias does not fit 32 bits");
        n.biases.push_back(static_cast<std::int32_t>(bias));
    }
    return n;
}

Or<PoolNumbers> numbers_of(const Graph& graph, const Node& node, const compiler::AveragePool& pool,
                           const Options& options) {
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    const auto range = range_of(pool.activation, out);
    if (!range || !range->whole()) return std::unexpected("it has an activation");
    const ConvolutionShape shape = shape_of(graph, node, pool);
    const std::int32_t pixels = pool.window.kernel_h * pool.window.kernel_w;
    using Rounding = compiler::AveragePool::Rounding;
    PoolNumbers numbers;
    const bool scaled = pool.rounding == Rounding::scaled && !pool.total;
    if (in.same_numbers(out) && !pool.total && !scaled) {
        numbers = average_of(shape, pixels, in, pool.rounding, options);
    } else {
        const float ratio =
            scaled ? in.scale / (static_cast<float>(pixels) * out.scale) : in.scale / out.scale;
        const double multiplier = static_cast<double>(ratio) / (scaled || pool.total ? 1 : pixels);
        auto r = requantisation_of(
            std::array{multiplier},
            {.requant = scaled ? Options::Requant::tflite : Options::Requant::exact});
        if (!r) return std::unexpected("its scales have no constants on this chip");
        numbers.numbers.requantisation = std::move(*r);
        numbers.numbers.requantisation.zero = zero_of(out);
        std::int32_t bias = -zero_of(in) * pixels;
        if (scaled) {
            bias = 128 * pixels;
            numbers.numbers.requantisation.zero -= static_cast<std::int32_t>(
                std::round(static_cast<float>(in.zero) * in.scale / out.scale));
        }
        numbers.numbers.biases.assign(static_cast<std::size_t>(shape.out_channels), bias);
    }
    numbers.numbers.input_zero = zero_of(in);
    return numbers;
}

namespace {

ByteNumbers bytes_of(const Value& value) {
    return {value.scale, zero_of(value)};
}

Or<ElementStep> element(const Graph& graph, const Node& node, ElementNumbers n,
                        Activation activation) {
    const Value& out = graph.values[node.outputs[0]];
    const auto range = range_of(activation, out);
    if (!range) return std::unexpected("its activation is none of RELU and RELU6");
    if (range->high < 127)
        return std::unexpected("its activation has an upper bound below its range");
    n.range = *range;
    n.a = bytes_of(graph.values[node.inputs[0]]);
    if (node.inputs.size() > 1) n.b = bytes_of(graph.values[node.inputs[1]]);
    n.out = bytes_of(out);
    const auto gains = best_gains(n);
    if (!gains) return std::unexpected("its scales have no constants on this chip");
    ElementStep s;
    s.operation = n.operation;
    s.zero_a = n.a.zero;
    s.zero_b = n.b.zero;
    s.gains = gains->gains;
    s.zero = n.out.zero;
    s.relu = n.range.low > -128;
    return s;
}

}  // namespace

Or<ElementStep> element_of(const Graph& graph, const Node& node, const compiler::Sum& o) {
    return element(graph, node, {}, o.activation);
}

Or<ElementStep> element_of(const Graph& graph, const Node& node, const compiler::Difference& o) {
    return element(graph, node, {.subtract = true}, o.activation);
}

Or<ElementStep> element_of(const Graph& graph, const Node& node, const compiler::Product& o) {
    return element(graph, node, {.operation = ElementStep::Operation::product}, o.activation);
}

Or<ElementStep> element_of(const Graph& graph, const Node& node, const compiler::Rescale& o) {
    // QUANTIZE alone divides its scales in float64.
    return element(graph, node,
                   {.operation = ElementStep::Operation::rescale,
                    .float_factor = o.activation != Activation::none},
                   o.activation);
}

}  // namespace reef::rk3588::lowering
