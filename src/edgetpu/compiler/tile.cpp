// Pass "tile": a program's operators become steps on tensors that are cut into tiles.
#include <algorithm>
#include <limits>
#include <map>

#include "edgetpu/compiler/lstm.h"
#include "edgetpu/compiler/plan.h"
#include "edgetpu/compiler/rearrangement.h"
#include "edgetpu/compiler/target.h"
#include "edgetpu/compiler/transposed.h"

namespace reef::edgetpu::lowering {
namespace {

using compiler::ValueId;

Spans split(std::int32_t size) {
    Spans spans{};
    const auto border = [&](std::int32_t i) {
        return (i * size + std::int32_t{grid} - 1) / std::int32_t{grid};
    };
    for (unsigned i = 0; i < grid; ++i)
        spans[i] = {border(static_cast<std::int32_t>(i)), border(static_cast<std::int32_t>(i + 1))};
    return spans;
}

ActivationLimits limits_of(compiler::Activation activation) {
    return activation == compiler::Activation::relu    ? ActivationLimits::relu
           : activation == compiler::Activation::relu6 ? ActivationLimits::relu6
                                                       : ActivationLimits::none;
}

/// Of what a table's lines are applied to: far beyond all results, and finite, as infinity times
/// their zero coefficients would be no number.
constexpr float bent_limit = 0x1p20F;

/// An input channel of one tap.
struct Selected {
    std::int32_t tap = 0, channel = 0;
};

class Tiler {
  public:
    Tiler(const compiler::Graph& graph, const TileOptions& options)
        : graph_(graph), options_(options) {
        plan_.graph = &graph;
    }

    Plan run(const compiler::Program& program) {
        for (const auto& port : program.inputs) {
            const TensorId id = tensor_of(port.source);
            plan_.inputs.push_back({port.tensor, id});
            // States come when the step that keeps them begins.
            if (is_state(port.tensor)) continue;
            plan_.steps.push_back({.node = program.nodes.front(),
                                   .in = {},
                                   .out = id,
                                   .kind = InputStep{port.tensor}});
        }
        for (const std::size_t node : program.nodes) {
            node_ = node;
            std::visit(*this, graph_.nodes[node].operation);
        }
        for (const auto& port : program.outputs)
            plan_.outputs.push_back({port.tensor, tensor_of(port.source)});
        for (const Port& state : states_) plan_.outputs.push_back(state);
        return std::move(plan_);
    }

    // By operation. Those that no program holds come from nowhere.
    void operator()(const compiler::Unknown&) const {}
    void operator()(const compiler::Folded&) const {}

    void operator()(const compiler::Reshape&) {
        const auto& node = graph_.nodes[node_];
        rearrange(tensor_of(node.inputs[0]), order_of_reshape(out()));
    }
    void operator()(const compiler::Transpose& transpose) {
        const auto& node = graph_.nodes[node_];
        rearrange(tensor_of(node.inputs[0]), order_of_transpose(in(0), transpose));
    }

    void operator()(const compiler::Pad& pad) {
        // Others may want another border than the zero point.
        const TensorId id = own_border();
        add_of({id}, CopyStep{.last_bytes = pad.channels == 0 ? 0 : in(0).channels % 4,
                              .filled_words = static_cast<std::int32_t>((out().channels + 3) / 4 -
                                                                        (in(0).channels + 3) / 4),
                              .window = {.top = pad.top, .left = pad.left},
                              .scaling = unchanged(in(0).zero)});
    }
    void operator()(const compiler::Slice& slice) {
        const auto& node = graph_.nodes[node_];
        for (std::size_t i = 0; i < slice.parts.size(); ++i) {
            const auto& p = slice.parts[i];
            const TensorId from = tensor_of(node.inputs[0]), to = tensor_of(node.outputs[i]);
            const Window window{
                .stride_h = p.step_y, .stride_w = p.step_x, .top = -p.y, .left = -p.x};
            if (p.channel % 4 == 0) {
                push({from}, to,
                     CopyStep{.first_from_channel = p.channel,
                              .window = window,
                              .scaling = unchanged(in(0).zero)});
                continue;
            }
            std::vector<Selected> channels;
            for (std::int32_t c = 0; c < plan_.tensors[to].channels; ++c)
                channels.push_back({0, p.channel + c});
            select(from, to, window, channels);
        }
    }

    void operator()(const compiler::Convolution& conv) {
        // The graph outlives the plan.
        convolve({std::shared_ptr<void>(), &conv}, {});
    }
    void operator()(const compiler::TransposedConvolution& transposed) {
        for (const auto& [conv, phase] : phases_of(transposed.of)) {
            if (phase.y >= out().height || phase.x >= out().width) continue;
            convolve(std::make_shared<const compiler::Convolution>(conv), phase);
        }
    }

    void operator()(const compiler::Blocks& blocks) {
        const auto& node = graph_.nodes[node_];
        const TensorId from = tensor_of(node.inputs[0]), to = tensor_of(node.outputs[0]);
        const std::int32_t side = blocks.side;
        const std::int32_t channels = blocks.from_channels ? out().channels : in(0).channels;
        std::vector<Selected> all;
        for (std::int32_t i = 0; i < side * side; ++i) {
            const std::int32_t y = i / side, x = i % side;
            std::vector<Selected> own;
            for (std::int32_t c = 0; c < channels; ++c)
                (blocks.from_channels ? own : all)
                    .push_back(blocks.from_channels ? Selected{0, i * channels + c}
                                                    : Selected{i, c});
            if (channels % 4 == 0)
                push({from}, to, copy_of_block(blocks, y, x, i * channels));
            else if (blocks.from_channels)
                select(from, to, {}, own, {side, side, y, x});
        }
        if (channels % 4 != 0 && !blocks.from_channels)
            select(from, to,
                   {.kernel_h = side, .kernel_w = side, .stride_h = side, .stride_w = side}, all);
    }

    void operator()(const compiler::Sum& sum) { add(sum_of(in(1).zero, sum.activation)); }

    /// The sum of the first and the second mirrored, a byte of 255 less: factors of a sum are
    /// positive in all known programs.
    void operator()(const compiler::Difference& difference) {
        const auto& inputs = graph_.nodes[node_].inputs;
        const TensorId b = tensor_of(inputs[1]);
        const TensorId mirrored = like(b);
        plan_.tensors[mirrored].zero = 255 - in(1).zero;
        Scaling mirror = unchanged(0);
        mirror.out_zero = 255;
        push({b, b}, mirrored, CombinationStep{-1, 0, mirror});
        add_of({tensor_of(inputs[0]), mirrored}, sum_of(255 - in(1).zero, difference.activation));
    }

    /// The second, and twice the half of what the first is above it.
    void operator()(const compiler::Maximum&) { bent(1, -1, 2); }
    /// The second less twice the half of what it is above the first.
    void operator()(const compiler::Minimum&) { bent(-1, 1, -2); }

    void operator()(const compiler::LeakyRelu& leaky) {
        through_lines(Function::leaky_relu, leaky.slope);
    }
    void operator()(const compiler::HardSwish&) {
        through_lines(Function::hard_swish, out().scale);
    }

    /// What is above zero, rescaled, and what is below it, as a depthwise convolution of a pixel:
    /// one of the two is the zero point.
    void operator()(const compiler::Prelu& prelu) {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        const auto& node = graph_.nodes[node_];
        const TensorId from = tensor_of(node.inputs[0]), to = tensor_of(node.outputs[0]);
        const TensorId below = like(from), sloped = like(to), above = like(to);
        Scaling negative = unchanged(in(0).zero);
        negative.clamp = {-infinite, 0};
        push({from}, below, CopyStep{.scaling = negative});
        const auto& slopes = prelu.slopes;
        Scaling scaling = scaling_of(compiler::Activation::none);
        scaling.scale = layer_multiplier(in(0).scale, slopes.weight_scales.front(), out().scale);
        push({below}, sloped,
             ConvolutionStep{
                 slopes.window, true, plan_.layers.size(), scaling, slopes.weight_zero, {}});
        // The graph outlives the plan.
        add_layer({std::shared_ptr<void>(), &slopes}, {});
        Scaling positive = copying(in(0), compiler::Activation::none);
        positive.clamp = {0, infinite};
        push({from}, above, CopyStep{.scaling = positive});
        push({above, sloped}, to, CombinationStep{1, 1, unchanged(out().zero)});
    }

    /// The elements lie behind one another on one tile meanwhile.
    void operator()(const compiler::ByElement& image) {
        const auto& node = graph_.nodes[node_];
        const TensorId from = tensor_of(node.inputs[0]), to = tensor_of(node.outputs[0]);
        const auto& conv = image.flat;
        const TensorId flat = flattened(from), scaled = flattened(to);
        push({from}, flat, rearrangement({0, 0, 0, 1}, flat));
        Scaling scaling = scaling_of(conv.activation);
        scaling.scale = layer_multiplier(in(0).scale, conv.weight_scales.front(), out().scale);
        push(
            {flat}, scaled,
            ConvolutionStep{conv.window, true, plan_.layers.size(), scaling, conv.weight_zero, {}});
        // The graph outlives the plan.
        add_layer({std::shared_ptr<void>(), &conv}, {});
        push({scaled}, to, rearrangement(order_of_reshape(out()), to));
    }
    void operator()(const compiler::RowProduct& product) {
        const auto& node = graph_.nodes[node_];
        const TensorId from = tensor_of(node.inputs[0]);
        const TensorId rows = like(tensor_of(node.outputs[0]));
        const compiler::Value value = rows_of(product, out());
        Tensor& t = plan_.tensors[rows];
        t.channels = value.channels;
        t.scale = in(0).scale;
        t.zero = t.border = in(0).zero;
        push({from}, rows, rearrangement(order_of_reshape(value), rows));
        convolve({std::shared_ptr<void>(), &product.of}, {}, rows);
    }
    void operator()(const compiler::Product& product) {
        ProductStep step{.second_zero = in(1).zero, .scaling = scaling_of(product.activation)};
        step.scaling.scale = layer_multiplier(in(0).scale, in(1).scale, out().scale);
        add(step);
    }

    void operator()(const compiler::Rescale& rescale) {
        add(CopyStep{.scaling = copying(in(0), rescale.activation)});
    }

    void operator()(const compiler::Logistic&) {
        Scaling scaling{
            in(0).zero, 0, in(0).scale, {spec::sigmoid_256.least, spec::sigmoid_256.most}};
        add(CopyStep{.function = Function::logistic, .scaling = scaling});
    }
    void operator()(const compiler::Softmax& softmax) {
        add(SoftmaxStep{in(0).scale * softmax.beta});
    }
    /// 128 tanh(x) is 256 / (1 + exp(-2 x)) less 128, the output's zero point.
    void operator()(const compiler::Tanh&) {
        Scaling scaling{
            in(0).zero, 0, 2 * in(0).scale, {spec::sigmoid_256.least, spec::sigmoid_256.most}};
        add(CopyStep{.function = Function::logistic, .scaling = scaling});
    }

    /// The gates' products with the input, of all steps at once; then step by step on tile 0.
    void operator()(const compiler::Lstm& lstm) {
        const auto& node = graph_.nodes[node_];
        LstmStep step = lstm_step(lstm, out());
        const TensorId to = tensor_of(node.outputs[0]), gates = like(to);
        plan_.tensors[gates].channels = 4 * step.gate_bytes;
        Scaling scaling = scaling_of(compiler::Activation::none);
        push({tensor_of(node.inputs[0])}, gates,
             ConvolutionStep{{}, false, plan_.layers.size(), scaling, 0, {}});
        add_layer(stacked(lstm.input, step.gate_bytes), in(0).scale);
        const TensorId together = like(gates);
        plan_.tensors[together].lie_as(Layout::whole);
        push({gates}, together, GatherStep{1});
        std::vector<TensorId> inputs{together};
        for (const std::size_t i : {1, 2}) inputs.push_back(add_state(node.inputs[i]));
        Tensor& cell = plan_.tensors[inputs.back()];
        cell.zero = LstmStep::cell_zero;
        // Whole gates of it are computed.
        cell.slack = 2 * static_cast<std::uint32_t>(step.gate_bytes) - cell.pixel_bytes();
        cell.scale = lstm.cell_scale;
        step.layer = plan_.layers.size();
        add_layer(stacked(lstm.recurrent, step.gate_bytes), out().scale);
        ParameterLayer& layer = plan_.layers.back();
        layer.spread = true;
        layer.biased = false;
        layer.share_groups = (static_cast<std::uint32_t>(4 * step.gate_bytes) + lanes - 1) / lanes;
        const TensorId given = flattened(to);
        plan_.tensors[given].channels = step.steps * step.gate_bytes;
        const std::int64_t pixel = step.gate_bytes;
        push(std::move(inputs), given, step);
        push({given}, to, rearrangement({0, pixel * out().width, pixel, 1}, to));
    }

    void operator()(const compiler::Concatenation& joined) {
        if (joined.axis != compiler::Axis::channels) return join_places(joined);
        const auto& inputs = graph_.nodes[node_].inputs;
        // Each part begins at a word; where that leaves gaps, channels are selected from it.
        std::vector<Selected> channels;
        std::int32_t channel = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            for (std::int32_t c = 0; c < in(i).channels; ++c) channels.push_back({0, channel + c});
            channel += (in(i).channels + 3) / 4 * 4;
        }
        const TensorId to = tensor_of(graph_.nodes[node_].outputs[0]);
        const bool gaps = channels.back().channel + 1 != out().channels;
        const TensorId parts = gaps ? like(to) : to;
        if (gaps) plan_.tensors[parts].channels = channel;
        channel = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            push({tensor_of(inputs[i])}, parts,
                 CopyStep{.first_channel = channel, .scaling = copying(in(i), joined.activation)});
            channel += (in(i).channels + 3) / 4 * 4;
        }
        if (gaps) select(parts, to, {}, channels);
    }

    void operator()(const compiler::MaxPool& pool) {
        const TensorId id = own_border();
        Tensor& source = plan_.tensors[id];
        // The smallest code, so that no border is the largest.
        source.border = 0;
        // Rows of 4 pixels are read to their end.
        source.slack = 3 * source.pixel_bytes();
        add_of({id}, MaxStep{pool.window, scaling_of(pool.activation)});
    }

    void operator()(const compiler::AveragePool& pool) {
        Scaling scaling = scaling_of(pool.activation);
        const auto pixels = static_cast<float>(pool.window.kernel_h * pool.window.kernel_w);
        const float of_one = pool.total ? in(0).scale : in(0).scale * (1.0F / pixels);
        scaling.scale = of_one * (1.0F / out().scale);
        if (options_.averages_as_layers && pool.window.kernel_h * pool.window.kernel_w <= most_taps)
            return add_up(pool.window, scaling);
        const bool all =
            pool.window.kernel_h == in(0).height && pool.window.kernel_w == in(0).width;
        if (all)
            add(GlobalAverageStep{scaling});
        else
            add(AverageStep{pool.window, scaling});
    }

    void operator()(const compiler::Resize& resize) {
        if (resize.nearest) return add(EnlargeStep{true});
        const TensorId id = own_border();
        plan_.tensors[id].repeats_border = true;
        add_of({id}, EnlargeStep{false});
    }

  private:
    [[nodiscard]] const compiler::Value& in(std::size_t i) const {
        return graph_.values[graph_.nodes[node_].inputs[i]];
    }
    [[nodiscard]] const compiler::Value& out() const {
        return graph_.values[graph_.nodes[node_].outputs[0]];
    }

    SumStep sum_of(std::int32_t second_zero, compiler::Activation activation) const {
        SumStep step{.factors = sum_factors(in(0).scale, in(1).scale),
                     .scaling = scaling_of(activation)};
        step.initial = -(in(0).zero * step.factors.first + second_zero * step.factors.second);
        step.scaling.scale = sum_multiplier(in(0).scale, step.factors, out().scale);
        step.scaling.in_zero = 0;
        return step;
    }

    /// The half of first * a + second * b, where it is above zero, then so many times added to b.
    /// The half is taken with the scale by its reciprocal, which need not be one.
    void bent(std::int32_t first, std::int32_t second, std::int32_t times) {
        const auto& inputs = graph_.nodes[node_].inputs;
        const TensorId a = tensor_of(inputs[0]), b = tensor_of(inputs[1]);
        const TensorId above = like(b);
        const float unit = out().scale * (1.0F / out().scale);
        const Scaling half{0, 0, 0.5F * unit, {0, 128 * out().scale * (1.0F / out().scale)}};
        push({a, b}, above, CombinationStep{first, second, half});
        add_of({b, above}, CombinationStep{1, times, unchanged(0)});
    }

    /// A copy to the output's scale, then a table.
    void through_lines(Function function, float constant) {
        Scaling scaling = copying(in(0), compiler::Activation::none);
        scaling.clamp = {-bent_limit, bent_limit};
        add(CopyStep{.function = function, .constant = constant, .scaling = scaling});
    }

    Scaling scaling_of(compiler::Activation activation) const {
        return {in(0).zero, out().zero, 1.0F,
                clamp_limits(out().scale, out().zero, 0, 255, limits_of(activation))};
    }
    Scaling copying(const compiler::Value& from, compiler::Activation activation) const {
        Scaling scaling = scaling_of(activation);
        scaling.in_zero = from.zero;
        scaling.scale = from.scale * (1.0F / out().scale);
        return scaling;
    }

    void join_places(const compiler::Concatenation& joined) {
        const auto& inputs = graph_.nodes[node_].inputs;
        const bool rows = joined.axis == compiler::Axis::rows;
        std::int32_t at = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const std::int32_t size = rows ? in(i).height : in(i).width;
            const std::int64_t column = in(i).channels, row = column * in(i).width;
            RearrangeStep step{.order = {-at * (rows ? row : column), row, column, 1},
                               .region = {{0, out().height}, {0, out().width}},
                               .scaling = copying(in(i), joined.activation)};
            (rows ? step.region.rows : step.region.columns) = {at, at + size};
            add_of({tensor_of(inputs[i])}, step);
            at += size;
        }
    }

    void rearrange(TensorId from, const ElementOrder& order) {
        add_of({from}, rearrangement(order, tensor_of(graph_.nodes[node_].outputs[0])));
    }
    [[nodiscard]] RearrangeStep rearrangement(const ElementOrder& order, TensorId to) const {
        const Tensor& all = plan_.tensors[to];
        return {.order = order,
                .region = {{0, all.height}, {0, all.width}},
                .scaling = unchanged(all.zero)};
    }

    /// `of`: the node's input, unless another is given.
    void convolve(std::shared_ptr<const compiler::Convolution> conv, const Phase& phase,
                  std::optional<TensorId> of = {}) {
        Scaling scaling = scaling_of(conv->activation);
        std::vector<float> multipliers;
        if (conv->per_channel()) {
            for (const float weight : conv->weight_scales)
                multipliers.push_back(layer_multiplier(in(0).scale, weight, out().scale));
        } else {
            scaling.scale = layer_multiplier(in(0).scale, conv->weight_scales.front(), out().scale);
        }
        // Zero points of layers with scales by channel are rows of parameters.
        const std::int32_t zero = conv->per_channel() ? 0 : conv->weight_zero;
        add_of({of ? *of : tensor_of(graph_.nodes[node_].inputs[0])},
               ConvolutionStep{conv->window, conv->depthwise, plan_.layers.size(), scaling, zero,
                               phase});
        add_layer(std::move(conv), std::move(multipliers));
    }
    /// Of an LSTM: to the scale of its result.
    void add_layer(compiler::Convolution conv, float in_scale) {
        std::vector<float> multipliers;
        for (const float weight : conv.weight_scales)
            multipliers.push_back(layer_multiplier(in_scale, weight, out().scale));
        add_layer(std::make_shared<const compiler::Convolution>(std::move(conv)),
                  std::move(multipliers));
    }
    void add_layer(std::shared_ptr<const compiler::Convolution> conv,
                   std::vector<float> multipliers) {
        plan_.layers.push_back({.source = std::move(conv),
                                .node = node_,
                                .name = model::place_of(graph_.subgraph(), node_),
                                .multipliers = std::move(multipliers),
                                .pieces = {}});
    }

    /// Channels of one pixel of each block.
    CopyStep copy_of_block(const compiler::Blocks& blocks, std::int32_t y, std::int32_t x,
                           std::int32_t channel) const {
        CopyStep step{.scaling = unchanged(in(0).zero)};
        if (blocks.from_channels) {
            step.first_from_channel = channel;
            step.phase = {blocks.side, blocks.side, y, x};
        } else {
            step.first_channel = channel;
            step.window = {.stride_h = blocks.side, .stride_w = blocks.side, .top = -y, .left = -x};
        }
        return step;
    }

    /// Each channel of the result is one of the input's: a convolution with weights of 0 and 1.
    void select(TensorId from, TensorId to, const Window& window,
                const std::vector<Selected>& channels, const Phase& phase = {}) {
        const Tensor& source = plan_.tensors[from];
        auto conv = std::make_shared<compiler::Convolution>(
            compiler::Convolution{.window = window,
                                  .in_channels = source.channels,
                                  .out_channels = static_cast<std::int32_t>(channels.size()),
                                  .weights = {},
                                  .weight_scales = {1.0F},
                                  .biases = std::vector<std::int32_t>(channels.size(), 0)});
        const auto ins = static_cast<std::size_t>(source.channels);
        const auto taps = static_cast<std::size_t>(window.kernel_h * window.kernel_w);
        auto weights = std::make_shared<std::vector<std::byte>>(channels.size() * taps * ins);
        for (std::size_t i = 0; i < channels.size(); ++i)
            (*weights)[(i * taps + static_cast<std::size_t>(channels[i].tap)) * ins +
                       static_cast<std::size_t>(channels[i].channel)] = std::byte{1};
        conv->weights = SharedBytes(*weights, weights);
        push({from}, to,
             ConvolutionStep{window, false, plan_.layers.size(), unchanged(source.zero), 0, phase});
        add_layer(std::move(conv), {});
    }

    /// The sum of each channel over the window: a depthwise layer whose weights are 1.
    void add_up(const Window& window, const Scaling& scaling) {
        const auto channels = static_cast<std::size_t>(in(0).channels);
        auto conv = std::make_shared<compiler::Convolution>(
            compiler::Convolution{.window = window,
                                  .depthwise = true,
                                  .in_channels = in(0).channels,
                                  .out_channels = in(0).channels,
                                  .weights = {},
                                  .weight_scales = {1.0F},
                                  .biases = std::vector<std::int32_t>(channels, 0)});
        const auto taps = static_cast<std::size_t>(window.kernel_h * window.kernel_w);
        const auto ones = std::make_shared<std::vector<std::byte>>(taps * channels, std::byte{1});
        conv->weights = SharedBytes(*ones, ones);
        add(ConvolutionStep{window, true, plan_.layers.size(), scaling, 0, {}});
        add_layer(std::move(conv), {});
    }

    void add(StepKind kind) {
        std::vector<TensorId> inputs;
        for (const ValueId v : graph_.nodes[node_].inputs) inputs.push_back(tensor_of(v));
        add_of(std::move(inputs), std::move(kind));
    }
    void add_of(std::vector<TensorId> inputs, StepKind kind) {
        push(std::move(inputs), tensor_of(graph_.nodes[node_].outputs[0]), std::move(kind));
    }
    void push(std::vector<TensorId> inputs, TensorId to, StepKind kind) {
        plan_.steps.push_back(
            {.node = node_, .in = std::move(inputs), .out = to, .kind = std::move(kind)});
    }

    static Scaling unchanged(std::int32_t zero) {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        return {zero, zero, 1.0F, {-infinite, infinite}};
    }

    /// The input, or a copy of it where others may want another border.
    TensorId own_border() {
        const ValueId value = graph_.nodes[node_].inputs[0];
        const TensorId shared = tensor_of(value);
        if (graph_.readers(value).size() == 1) return shared;
        const TensorId copy = like(shared);
        plan_.steps.push_back({.node = node_,
                               .in = {shared},
                               .out = copy,
                               .kind = CopyStep{.scaling = unchanged(plan_.tensors[shared].zero)}});
        return copy;
    }

    [[nodiscard]] bool is_state(ValueId value) const {
        return graph_.subgraph().tensors[value].is_variable;
    }
    /// A state tensor: read from the host now, and written back to it at the end.
    TensorId add_state(ValueId value) {
        const TensorId id = tensor_of(value);
        push({}, id, InputStep{value});
        states_.push_back({.value = value, .tensor = id, .is_state = true});
        return id;
    }

    TensorId like(TensorId other) {
        const Tensor copy = plan_.tensors[other];
        plan_.tensors.push_back(copy);
        return plan_.tensors.size() - 1;
    }

    /// One pixel of all its elements.
    TensorId flattened(TensorId other) {
        const TensorId id = like(other);
        Tensor& t = plan_.tensors[id];
        t.channels *= t.height * t.width;
        t.height = t.width = 1;
        t.own_rows = t.window_rows = t.own_columns = t.window_columns = split(1);
        return id;
    }

    TensorId tensor_of(ValueId value) {
        const auto [at, fresh] = ids_.try_emplace(value, plan_.tensors.size());
        if (!fresh) return at->second;
        const compiler::Value& v = graph_.values[value];
        Tensor& t = plan_.tensors.emplace_back();
        t.name = v.name;
        t.height = v.height;
        t.width = v.width;
        t.element_bytes = v.type == ElementType::int16 ? 2 : 1;
        t.channels = v.channels * t.element_bytes;
        t.zero = t.border = v.zero;
        t.scale = v.scale;
        t.is_signed = v.type == ElementType::int8;
        t.own_rows = t.window_rows = split(v.height);
        t.own_columns = t.window_columns = split(v.width);
        return at->second;
    }

    const compiler::Graph& graph_;
    TileOptions options_;
    Plan plan_;
    std::map<ValueId, TensorId> ids_;
    std::vector<Port> states_;
    std::size_t node_ = 0;
};

}  // namespace

Plan tile(const compiler::Graph& graph, const compiler::Program& program,
          const TileOptions& options) {
    return Tiler(graph, options).run(program);
}

}  // namespace reef::edgetpu::lowering
