#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/lowering.h"
#include "rk3588/compiler/plan.h"
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

/// The sum of each kernel's weights, without their zero point.
std::vector<std::int64_t> weight_sums(const compiler::Convolution& conv) {
    const auto outs = static_cast<std::size_t>(conv.out_channels);
    std::vector<std::int64_t> sums(outs, 0);
    const Bytes weights = conv.weights.view();
    const std::size_t each = weights.size() / outs;
    for (std::size_t i = 0; i < weights.size(); ++i)
        sums[conv.depthwise ? i % outs : i / each] +=
            std::to_integer<std::int64_t>(weights[i]) - conv.weight_zero;
    return sums;
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
/// halves.
PoolNumbers average_of_bytes(const ConvolutionShape& s, std::int32_t pixels) {
    PoolNumbers pool;
    pool.weight = 2;
    pool.numbers.requantisation = two_factors(1.0 / (2.0 * pixels));
    pool.numbers.requantisation.zero = -128;
    const std::int32_t bias = 2 * 128 * pixels + (pixels % 2 == 0 ? 1 : 0);
    pool.numbers.biases.assign(static_cast<std::size_t>(s.out_channels), bias);
    return pool;
}

/// The average of int8 values, a half away from zero: a scale that is a little too large.
PoolNumbers average_of_signed(const ConvolutionShape& s, std::int32_t pixels) {
    PoolNumbers pool;
    auto& r = pool.numbers.requantisation;
    if (pixels % 2 != 0) {
        r = two_factors(1.0 / pixels);
    } else {
        const auto nearest = nearest_scale(1.0 / pixels);
        r.shift = nearest.shift;
        r.scale = static_cast<std::int32_t>(std::floor(std::ldexp(1.0 / pixels, r.shift))) + 1;
    }
    pool.numbers.biases.assign(static_cast<std::size_t>(s.out_channels), 0);
    return pool;
}

class Lowering {
  public:
    Lowering(const Graph& graph, const compiler::Program& program, const Options& options)
        : options_(options) {
        plan_.graph = &graph;
        plan_.program = &program;
    }

    Result<Plan> run() {
        if (options_.fuse_sums)
            for (const std::size_t index : plan_.program->nodes) fuse_into(index);
        for (const std::size_t index : plan_.program->nodes) {
            const Node& node = plan_.graph->nodes[index];
            if (compiler::holds(fused_away_, index)) continue;
            if (const auto fused = fused_.find(index); fused != fused_.end()) {
                plan_.steps.push_back(std::move(fused->second));
                continue;
            }
            auto kind = std::visit([&](const auto& o) { return step(node, o); }, node.operation);
            if (!kind)
                return fail(Cause::unsupported, std::move(kind).error(),
                            model::place_of(plan_.graph->subgraph(), index));
            plan_.steps.push_back({index, node.inputs, node.outputs[0], std::move(*kind)});
        }
        return std::move(plan_);
    }

  private:
    using Kind = decltype(Step::kind);

    /// The convolution that makes this operand of a sum for it alone, whose place the sum can take.
    [[nodiscard]] std::optional<std::size_t> fusable(ValueId operand) const {
        const Graph& graph = *plan_.graph;
        const auto maker = graph.producer(operand);
        if (!maker || !compiler::holds(plan_.program->nodes, *maker)) return std::nullopt;
        const auto* conv = std::get_if<compiler::Convolution>(&graph.nodes[*maker].operation);
        const bool alone = graph.readers(operand).size() == 1 && !graph.is_output(operand);
        if (conv == nullptr || conv->depthwise || conv->activation != Activation::none || !alone)
            return std::nullopt;
        return maker;
    }

    /// Sets the gain that takes the operand to the products' scale in front of the converter;
    /// false: EW has none so large.
    static bool reach(FusedSum& sum, double ratio, const Requantisation& r) {
        constexpr std::int32_t most_shift = 63;
        sum.gain = nearest_scale(ratio / std::ldexp(r.scale, -r.shift));
        return sum.gain.shift >= 0 && sum.gain.shift <= most_shift;
    }

    /// Of two convolutions the later one, so that the other operand is there.
    void fuse_into(std::size_t index) {
        const Node& node = plan_.graph->nodes[index];
        const auto* sum = std::get_if<compiler::Sum>(&node.operation);
        if (sum == nullptr || node.inputs[0] == node.inputs[1]) return;
        std::optional<std::size_t> maker;
        ValueId addend = 0;
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
            if (const auto found = fusable(node.inputs[i]); found && (!maker || *found > *maker)) {
                maker = found;
                addend = node.inputs[1 - i];
            }
        if (!maker) return;
        // The convolution makes the sum's values.
        Node conv = plan_.graph->nodes[*maker];
        conv.outputs = node.outputs;
        const auto& operation = std::get<compiler::Convolution>(conv.operation);
        auto numbers = numbers_of(*plan_.graph, conv, operation, options_);
        if (!numbers) return;
        const Value& out = plan_.value(node.outputs[0]);
        const auto range = range_of(sum->activation, out);
        FusedSum fused{addend, zero_of(plan_.value(addend)), {}, range && range->low > -128};
        const double ratio =
            static_cast<double>(plan_.value(addend).scale) / static_cast<double>(out.scale);
        if (!reach(fused, ratio, numbers->requantisation)) {
            // Two factors of one scale: the converter's alone leaves the products as they are.
            auto& r = numbers->requantisation;
            if (!r.factors.empty()) return;
            const auto one = nearest_scale(r.factor * std::ldexp(r.scale, -r.shift));
            r = {.scale = one.scale, .shift = one.shift, .zero = r.zero};
            if (!reach(fused, ratio, r)) return;
        }
        auto kind = convolution(shape_of(*plan_.graph, conv, operation), std::move(*numbers));
        // A task for one surface has nothing for the second reader.
        if (!kind || kind->channel_tiles() > 1) return;
        add_weights(*kind, operation.weights.view());
        kind->sum = fused;
        fused_away_.push_back(*maker);
        fused_.emplace(index,
                       Step{index, {conv.inputs[0], addend}, node.outputs[0], std::move(*kind)});
    }

    std::uint32_t put(const std::vector<std::byte>& bytes) {
        constexpr std::size_t alignment = 64;
        auto& all = plan_.constants;
        all.resize((all.size() + alignment - 1) / alignment * alignment);
        const auto at = static_cast<std::uint32_t>(all.size());
        all.insert(all.end(), bytes.begin(), bytes.end());
        return at;
    }

    Or<ConvolutionStep> convolution(ConvolutionShape shape, Numbers numbers) {
        ConvolutionStep s;
        auto tiling = tiling_of(shape);
        if (!tiling) return std::unexpected("it does not fit the convolution buffer");
        s.buffer = tiling->buffer;
        s.tiles = std::move(tiling->rows);
        s.tile_channels = tiling->channels;
        s.shape = shape;
        s.input_zero = numbers.input_zero;
        s.weight_zero = numbers.weight_zero;
        s.numbers = std::move(numbers.requantisation);
        const bool by_channel = !s.numbers.factors.empty();
        s.operands = put(by_channel ? packed_operands(numbers.biases, s.numbers.factors)
                                    : packed_biases(numbers.biases));
        if (!s.numbers.powers.empty()) s.powers = put(packed_powers(s.numbers.powers));
        return s;
    }

    void add_weights(ConvolutionStep& s, Bytes weights) {
        // Each part of the output channels has groups of kernels of its own.
        std::vector<std::byte> all;
        const std::size_t kernel = weights.size() / static_cast<std::size_t>(s.shape.out_channels);
        for (std::int32_t c = 0; c < s.shape.out_channels; c += s.tile_channels) {
            const ConvolutionShape part = s.part(c);
            const auto packed = packed_weights(
                part,
                s.channel_tiles() == 1
                    ? weights
                    : weights.subspan(static_cast<std::size_t>(c) * kernel,
                                      static_cast<std::size_t>(part.out_channels) * kernel),
                s.weight_zero);
            all.insert(all.end(), packed.begin(), packed.end());
        }
        s.weights = put(all);
        s.weight_bytes = static_cast<std::uint32_t>(all.size());
    }

    Or<Kind> step(const Node& node, const compiler::Convolution& conv) {
        auto numbers = numbers_of(*plan_.graph, node, conv, options_);
        if (!numbers) return std::unexpected(numbers.error());
        auto s = convolution(shape_of(*plan_.graph, node, conv), std::move(*numbers));
        if (!s) return std::unexpected(s.error());
        add_weights(*s, conv.weights.view());
        return std::move(*s);
    }

    Or<Kind> step(const Node& node, const compiler::AveragePool& pool) {
        auto numbers = numbers_of(*plan_.graph, node, pool);
        if (!numbers) return std::unexpected(numbers.error());
        const auto shape = shape_of(*plan_.graph, node, pool);
        auto s = convolution(shape, std::move(numbers->numbers));
        if (!s) return std::unexpected(s.error());
        const auto count = static_cast<std::size_t>(shape.window.kernel_h) *
                           static_cast<std::size_t>(shape.window.kernel_w) *
                           static_cast<std::size_t>(shape.channels);
        add_weights(*s, std::vector<std::byte>(count, std::byte(numbers->weight + 128)));
        return std::move(*s);
    }

    Or<Kind> step(const Node& node, const compiler::Sum& sum) {
        const Value& a = plan_.value(node.inputs[0]);
        const Value& b = plan_.value(node.inputs[1]);
        const Value& out = plan_.value(node.outputs[0]);
        SumStep s;
        s.zero_a = zero_of(a);
        s.zero_b = zero_of(b);
        s.gains = sum_gains(static_cast<double>(a.scale) / static_cast<double>(out.scale),
                            static_cast<double>(b.scale) / static_cast<double>(out.scale));
        s.zero = zero_of(out);
        const auto range = range_of(sum.activation, out);
        if (!range || range->high < 127) return std::unexpected("its activation");
        s.relu = range->low > -128;
        return s;
    }

    Or<Kind> step(const Node&, const compiler::Concatenation&) { return PlacedStep{}; }
    Or<Kind> step(const Node& node, const auto&) {
        return std::unexpected(fmt::format("{} is not compiled", node.name));
    }

    const Options& options_;
    Plan plan_;
    std::map<std::size_t, Step> fused_;  ///< by the sum's node
    std::vector<std::size_t> fused_away_;
};

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

Or<Numbers> numbers_of(const Graph& graph, const Node& node, const compiler::Convolution& conv,
                       const Options& options) {
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    const auto range = range_of(conv.activation, out);
    if (!range) return std::unexpected("its activation is none of RELU and RELU6");
    const auto multipliers = multipliers_of(in, out, conv);
    const std::int32_t zero = zero_of(out);
    auto r = requantisation_of(multipliers, options, {range->low - zero, range->high - zero});
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
        const std::int64_t bias = conv.biases[c] - std::int64_t{n.input_zero} * sums[c] +
                                  second_rounding(multiplier, n.requantisation, *range, options);
        if (!fits32(bias)) return std::unexpected("a bias does not fit 32 bits");
        n.biases.push_back(static_cast<std::int32_t>(bias));
    }
    return n;
}

Or<PoolNumbers> numbers_of(const Graph& graph, const Node& node,
                           const compiler::AveragePool& pool) {
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    const auto range = range_of(pool.activation, out);
    if (!range || !range->whole()) return std::unexpected("it has an activation");
    const ConvolutionShape shape = shape_of(graph, node, pool);
    const std::int32_t pixels = pool.window.kernel_h * pool.window.kernel_w;
    PoolNumbers numbers;
    if (in.same_numbers(out)) {
        numbers = in.type == ElementType::uint8 ? average_of_bytes(shape, pixels)
                                                : average_of_signed(shape, pixels);
    } else {
        const double multiplier =
            static_cast<double>(in.scale) / (pixels * static_cast<double>(out.scale));
        auto r = requantisation_of(std::array{multiplier}, {.requant = Options::Requant::exact});
        if (!r) return std::unexpected("its scales have no constants on this chip");
        numbers.numbers.requantisation = std::move(*r);
        numbers.numbers.requantisation.zero = zero_of(out);
        const std::int32_t bias = -zero_of(in) * pixels;
        numbers.numbers.biases.assign(static_cast<std::size_t>(shape.out_channels), bias);
    }
    numbers.numbers.input_zero = zero_of(in);
    return numbers;
}

Result<Plan> lower(const Graph& graph, const compiler::Program& program, const Options& options) {
    return Lowering(graph, program, options).run();
}

}  // namespace reef::rk3588::lowering
