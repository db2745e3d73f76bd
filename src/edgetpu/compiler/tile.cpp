// Pass "tile": a program's operators become steps on tensors that are cut into tiles.
#include <limits>
#include <map>

#include "edgetpu/compiler/plan.h"
#include "edgetpu/compiler/rearrangement.h"

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

class Tiler {
  public:
    explicit Tiler(const compiler::Graph& graph) : graph_(graph) { plan_.graph = &graph; }

    Plan run(const compiler::Program& program) {
        for (const auto& port : program.inputs) {
            const TensorId id = tensor_of(port.source);
            plan_.inputs.push_back({port.tensor, id});
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
            std::vector<std::int32_t> channels;
            for (std::int32_t c = 0; c < plan_.tensors[to].channels; ++c)
                channels.push_back(p.channel + c);
            select(from, to, window, channels);
        }
    }

    void operator()(const compiler::Convolution& conv) {
        const float inverse_in = in(0).scale;
        // The graph outlives the plan.
        ParameterLayer layer{.source = {std::shared_ptr<void>(), &conv},
                             .node = node_,
                             .name = model::place_of(graph_.subgraph(), node_),
                             .multipliers = {},
                             .rows = {},
                             .pieces = {}};
        Scaling scaling = scaling_of(conv.activation);
        if (conv.per_channel()) {
            for (const float weight : conv.weight_scales)
                layer.multipliers.push_back(layer_multiplier(inverse_in, weight, out().scale));
        } else {
            scaling.scale = layer_multiplier(inverse_in, conv.weight_scales.front(), out().scale);
        }
        // Zero points of layers with scales by channel are rows of parameters.
        add(ConvolutionStep{conv.window, conv.depthwise, plan_.layers.size(), scaling,
                            conv.per_channel() ? 0 : conv.weight_zero});
        plan_.layers.push_back(std::move(layer));
    }

    void operator()(const compiler::Sum& sum) {
        SumStep step{.factors = sum_factors(in(0).scale, in(1).scale),
                     .scaling = scaling_of(sum.activation)};
        step.initial = -(in(0).zero * step.factors.first + in(1).zero * step.factors.second);
        step.scaling.scale = sum_multiplier(in(0).scale, step.factors, out().scale);
        step.scaling.in_zero = 0;
        add(step);
    }

    /// The second, and twice the half of what the first is above it. The half is taken with the
    /// scale by its reciprocal, which need not be one.
    void operator()(const compiler::Maximum&) {
        const auto& inputs = graph_.nodes[node_].inputs;
        const TensorId a = tensor_of(inputs[0]), b = tensor_of(inputs[1]);
        const TensorId above = like(b);
        const float unit = out().scale * (1.0F / out().scale);
        plan_.steps.push_back(
            {.node = node_,
             .in = {a, b},
             .out = above,
             .kind = CombinationStep{
                 1, -1, {0, 0, 0.5F * unit, {0, 128 * out().scale * (1.0F / out().scale)}}}});
        add_of({b, above}, CombinationStep{1, 2, unchanged(0)});
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
    void operator()(const compiler::Tanh&) const {}

    void operator()(const compiler::Concatenation& joined) {
        if (joined.axis != compiler::Axis::channels) return join_places(joined);
        const auto& inputs = graph_.nodes[node_].inputs;
        // Each part begins at a word; where that leaves gaps, channels are selected from it.
        std::vector<std::int32_t> channels;
        std::int32_t channel = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            for (std::int32_t c = 0; c < in(i).channels; ++c) channels.push_back(channel + c);
            channel += (in(i).channels + 3) / 4 * 4;
        }
        const TensorId to = tensor_of(graph_.nodes[node_].outputs[0]);
        const bool gaps = channels.back() + 1 != out().channels;
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
        const float of_one = in(0).scale * (1.0F / pixels);
        scaling.scale = of_one * (1.0F / out().scale);
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
        add_of({from}, RearrangeStep{.order = order,
                                     .region = {{0, out().height}, {0, out().width}},
                                     .scaling = unchanged(in(0).zero)});
    }

    /// Each channel of the result is one of the input's: a convolution with weights of 0 and 1.
    void select(TensorId from, TensorId to, const Window& window,
                const std::vector<std::int32_t>& channels) {
        const Tensor& source = plan_.tensors[from];
        auto conv = std::make_shared<compiler::Convolution>(
            compiler::Convolution{.window = window,
                                  .in_channels = source.channels,
                                  .out_channels = static_cast<std::int32_t>(channels.size()),
                                  .weights = {},
                                  .weight_scales = {1.0F},
                                  .biases = std::vector<std::int32_t>(channels.size(), 0)});
        const auto ins = static_cast<std::size_t>(source.channels);
        auto weights = std::make_shared<std::vector<std::byte>>(channels.size() * ins);
        for (std::size_t i = 0; i < channels.size(); ++i)
            (*weights)[i * ins + static_cast<std::size_t>(channels[i])] = std::byte{1};
        conv->weights = SharedBytes(*weights, weights);
        push({from}, to,
             ConvolutionStep{window, false, plan_.layers.size(), unchanged(source.zero), 0});
        plan_.layers.push_back({.source = std::move(conv),
                                .node = node_,
                                .name = model::place_of(graph_.subgraph(), node_),
                                .multipliers = {},
                                .rows = {},
                                .pieces = {}});
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

    TensorId like(TensorId other) {
        const Tensor copy = plan_.tensors[other];
        plan_.tensors.push_back(copy);
        return plan_.tensors.size() - 1;
    }

    TensorId tensor_of(ValueId value) {
        const auto [at, fresh] = ids_.try_emplace(value, plan_.tensors.size());
        if (!fresh) return at->second;
        const compiler::Value& v = graph_.values[value];
        Tensor& t = plan_.tensors.emplace_back();
        t.name = v.name;
        t.height = v.height;
        t.width = v.width;
        t.channels = v.channels;
        t.zero = t.border = v.zero;
        t.scale = v.scale;
        t.is_signed = v.type == ElementType::int8;
        t.own_rows = t.window_rows = split(v.height);
        t.own_columns = t.window_columns = split(v.width);
        return at->second;
    }

    const compiler::Graph& graph_;
    Plan plan_;
    std::map<ValueId, TensorId> ids_;
    std::size_t node_ = 0;
};

}  // namespace

Plan tile(const compiler::Graph& graph, const compiler::Program& program) {
    return Tiler(graph).run(program);
}

}  // namespace reef::edgetpu::lowering
