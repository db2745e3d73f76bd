#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>

#include "compiler/legalise.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/elements.h"
#include "rk3588/compiler/functions.h"
#include "rk3588/compiler/lowering.h"
#include "rk3588/compiler/plan.h"
#include "rk3588/compiler/weights.h"

namespace reef::rk3588::lowering {
namespace {

using compiler::Activation;
using compiler::Graph;
using compiler::Node;
using compiler::Value;

constexpr std::int32_t atom_lanes = static_cast<std::int32_t>(spec::atom_bytes);

/// Which value of a channel, and which channel, a kernel of a folded convolution makes: the strips
/// of a surface stand one below the other, so that the result is no folded one.
template <typename T>
std::vector<T> folded_channels(const std::vector<T>& plain, std::int32_t strips, T behind) {
    const std::size_t count = plain.size();
    std::vector<T> out;
    for (std::size_t first = 0; first < count; first += spec::atom_bytes)
        for (std::int32_t strip = 0; strip < strips; ++strip)
            for (std::size_t lane = 0; lane < spec::atom_bytes; ++lane)
                out.push_back(first + lane < count ? plain[first + lane] : behind);
    return out;
}

/// Every kernel once for each strip: weights for the strip's channels, and the zero point for the
/// others'.
std::vector<std::byte> folded_weights(Bytes weights, const compiler::Convolution& conv,
                                      std::int32_t strips) {
    const auto size = [](std::int32_t n) { return static_cast<std::size_t>(n); };
    const std::size_t channels = size(conv.in_channels), lanes = channels * size(strips);
    const std::size_t taps = size(conv.window.kernel_h) * size(conv.window.kernel_w);
    const std::vector<std::byte> nothing(taps * lanes, static_cast<std::byte>(conv.weight_zero));
    std::vector<std::size_t> kernels(size(conv.out_channels));
    std::iota(kernels.begin(), kernels.end(), std::size_t{0});
    const auto order = folded_channels(kernels, strips, kernels.size());
    std::vector<std::byte> out;
    out.reserve(order.size() * nothing.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
        auto kernel = nothing;
        const std::size_t strip = k / spec::atom_bytes % size(strips);
        for (std::size_t tap = 0; order[k] < kernels.size() && tap < taps; ++tap)
            std::ranges::copy(
                weights.subspan((order[k] * taps + tap) * channels, channels),
                kernel.begin() + static_cast<std::ptrdiff_t>(tap * lanes + strip * channels));
        out.insert(out.end(), kernel.begin(), kernel.end());
    }
    return out;
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
        // From the last one, so that a table computes as much as it can.
        if (options_.assume_lut)
            for (const std::size_t index : plan_.program->nodes | std::views::reverse)
                compute_by_table(index);
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
        if (options_.assume_planes) leave_room_for_planes();
        find_roots(plan_);
        note_folded();
        return std::move(plan_);
    }

  private:
    using Kind = decltype(Step::kind);

    /// Each task writes them behind its own channels: a later one's results go over them, the last
    /// one's are behind the tensor.
    void leave_room_for_planes() {
        for (const Step& step : plan_.steps) {
            const auto* conv = std::get_if<ConvolutionStep>(&step.kind);
            if (conv == nullptr) continue;
            const ConvolutionShape last =
                conv->shape.part(std::min(conv->task_channels, conv->shape.out_channels));
            const Cube cube = plan_.cube(step.output);
            const auto lanes = static_cast<std::uint32_t>(last.stepped_channels());
            plan_.slack[step.output] +=
                static_cast<std::uint32_t>((lanes / spec::atom_bytes - 1) * cube.surface_bytes());
        }
    }

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

    struct Fusable {
        std::size_t maker = 0;
        ValueId addend = 0;  ///< the other operand
    };
    /// Of two convolutions the later one, so that the other operand is there.
    [[nodiscard]] std::optional<Fusable> fusable(const Node& sum) const {
        std::optional<Fusable> later;
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
            if (const auto found = fusable(sum.inputs[i]);
                found && (!later || *found > later->maker))
                later = {*found, sum.inputs[1 - i]};
        return later;
    }

    void fuse_into(std::size_t index) {
        const Node& node = plan_.graph->nodes[index];
        const auto* sum = std::get_if<compiler::Sum>(&node.operation);
        if (sum == nullptr || node.inputs[0] == node.inputs[1]) return;
        const auto found = fusable(node);
        if (!found) return;
        const auto [maker, addend] = *found;
        // The convolution makes the sum's values.
        Node conv = plan_.graph->nodes[maker];
        conv.outputs = node.outputs;
        const auto& of_graph = std::get<compiler::Convolution>(conv.operation);
        const auto fine = with_fine_biases(of_graph, plan_.value(conv.inputs[0]));
        const compiler::Convolution& operation = fine ? *fine : of_graph;
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
        // A task for one surface has nothing for the second reader, and gaps between an operand's
        // rows are nothing that is known.
        if (!kind || kind->task_channels < kind->shape.out_channels || has_columns(*kind)) return;
        add_weights(*kind, operation.weights.view());
        kind->sum = fused;
        fused_away_.push_back(maker);
        plan_.absorbed.push_back({static_cast<std::uint32_t>(maker), conv.name, Absorption::sum,
                                  static_cast<std::uint32_t>(index)});
        fused_.emplace(index,
                       Step{index, {conv.inputs[0], addend}, node.outputs[0], std::move(*kind)});
    }

    void compute_by_table(std::size_t index) {
        if (fused_.contains(index) || compiler::holds(fused_away_, index)) return;
        const auto group = function_behind(*plan_.graph, plan_.program->nodes, index);
        if (!group) return;
        for (const std::size_t member : group->members) {
            if (member == index) continue;
            fused_away_.push_back(member);
            plan_.absorbed.push_back({static_cast<std::uint32_t>(member),
                                      plan_.graph->nodes[member].name, Absorption::table,
                                      static_cast<std::uint32_t>(index)});
        }
        fused_.emplace(index, Step{index,
                                   {group->root},
                                   plan_.graph->nodes[index].outputs[0],
                                   FunctionStep{group->function, group->members.size()}});
    }

    /// Operators that legalising folded into values of this program.
    void note_folded() {
        const Graph& graph = *plan_.graph;
        const auto touches = [&](ValueId value) {
            return std::ranges::any_of(plan_.program->nodes, [&](std::size_t n) {
                return compiler::holds(graph.nodes[n].inputs, value) ||
                       compiler::holds(graph.nodes[n].outputs, value);
            });
        };
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const Node& node = graph.nodes[i];
            const auto* folded = std::get_if<compiler::Folded>(&node.operation);
            if (folded == nullptr || !touches(compiler::source_of(graph, node.inputs[0]))) continue;
            plan_.absorbed.push_back({static_cast<std::uint32_t>(i), node.name,
                                      folded->copies ? Absorption::copied : Absorption::windows,
                                      static_cast<std::uint32_t>(i)});
        }
    }

    std::uint32_t put(const std::vector<std::byte>& bytes) {
        constexpr std::size_t alignment = 64;
        auto& all = plan_.constants;
        all.resize((all.size() + alignment - 1) / alignment * alignment);
        const auto at = static_cast<std::uint32_t>(all.size());
        all.insert(all.end(), bytes.begin(), bytes.end());
        return at;
    }

    static bool has_columns(const ConvolutionStep& s) {
        return std::ranges::any_of(s.pieces, [&](const Piece& piece) {
            return piece.tiles.front().columns.count < s.shape.out_width;
        });
    }

    Or<ConvolutionStep> convolution(const ConvolutionShape& shape, Numbers numbers) {
        ConvolutionStep s;
        s.task_channels = channels_of_task(shape);
        if (s.task_channels == 0) return std::unexpected("it does not fit the convolution buffer");
        s.pieces = pieces_of(shape, s.task_channels, Split::rows, 1);
        s.shape = shape;
        s.macs = macs_of(shape);
        s.input_zero = numbers.input_zero;
        s.weight_zero = numbers.weight_zero;
        s.numbers = std::move(numbers.requantisation);
        const bool by_channel = !s.numbers.factors.empty();
        s.numbers.short_groups = by_channel && shape.depthwise && options_.assume_groups48;
        s.operands = put(by_channel ? packed_operands(numbers.biases, s.numbers.factors,
                                                      s.numbers.operand_group_bytes())
                                    : packed_biases(numbers.biases));
        if (!s.numbers.powers.empty()) s.powers = put(packed_powers(s.numbers.powers));
        return s;
    }

    void add_weights(ConvolutionStep& s, Bytes weights) {
        // Each part of the output channels has groups of kernels of its own.
        std::vector<std::byte> all;
        const std::size_t kernel = weights.size() / static_cast<std::size_t>(s.shape.out_channels);
        for (std::int32_t c = 0; c < s.shape.out_channels; c += s.task_channels) {
            const std::int32_t count = std::min(s.task_channels, s.shape.out_channels - c);
            const bool whole = count == s.shape.out_channels;
            const auto packed =
                packed_weights(s.shape.part(count),
                               whole ? weights
                                     : weights.subspan(static_cast<std::size_t>(c) * kernel,
                                                       static_cast<std::size_t>(count) * kernel),
                               s.weight_zero);
            all.insert(all.end(), packed.begin(), packed.end());
        }
        s.weights = put(all);
        s.weight_bytes = static_cast<std::uint32_t>(all.size());
    }

    /// How the image's rows may stand beside each other: as many strips as an atom has lanes for,
    /// of as many rows of results each.
    [[nodiscard]] std::optional<Fold> fold_of(const Node& node, const compiler::Convolution& conv,
                                              const ConvolutionShape& shape) const {
        const ValueId in = node.inputs[0], out = node.outputs[0];
        const auto& ports = plan_.program->inputs;
        if (2 * shape.channels > atom_lanes || shape.out_height < 2) return std::nullopt;
        const auto readers = std::ranges::count_if(plan_.program->nodes, [&](std::size_t n) {
            return compiler::holds(plan_.graph->nodes[n].inputs, in);
        });
        if (!options_.fold_images || conv.depthwise || readers != 1 ||
            std::ranges::count(ports, in, &compiler::Program::Port::source) != 1)
            return std::nullopt;
        // Several surfaces of results follow each other without a gap; behind one there may be one.
        const bool exact = shape.out_channels > atom_lanes || is_part(out);
        std::int32_t strips = std::min(atom_lanes / shape.channels, shape.out_height);
        while (exact && strips > 1 && shape.out_height % strips != 0) --strips;
        const std::int32_t rows = (shape.out_height + strips - 1) / strips;
        strips = (shape.out_height + rows - 1) / rows;
        const std::int32_t stored = (rows - 1) * shape.window.stride_h + shape.window.reach_h();
        if (strips < 2 || stored >= shape.height) return std::nullopt;
        return Fold{.strips = static_cast<std::uint32_t>(strips),
                    .rows = static_cast<std::uint32_t>(stored),
                    .step = static_cast<std::uint32_t>(rows * shape.window.stride_h),
                    .top = static_cast<std::uint32_t>(shape.window.top),
                    .fill = static_cast<std::uint8_t>(zero_of(plan_.value(in)))};
    }
    [[nodiscard]] bool is_part(ValueId value) const {
        return std::ranges::any_of(plan_.program->nodes, [&](std::size_t n) {
            const Node& node = plan_.graph->nodes[n];
            return std::holds_alternative<compiler::Concatenation>(node.operation) &&
                   compiler::holds(node.inputs, value);
        });
    }

    /// Nothing: the folded one is no better, or does not fit.
    std::optional<ConvolutionStep> folded(const Node& node, const compiler::Convolution& conv,
                                          const ConvolutionShape& plain, Numbers numbers) {
        const auto fold = fold_of(node, conv, plain);
        if (!fold) return std::nullopt;
        const auto strips = static_cast<std::int32_t>(fold->strips);
        ConvolutionShape shape = plain;
        shape.height = static_cast<std::int32_t>(fold->rows);
        shape.channels = plain.channels * strips;
        shape.window.top = 0;
        shape.out_height = (plain.out_height + strips - 1) / strips;
        shape.out_channels =
            (plain.out_channels + atom_lanes - 1) / atom_lanes * atom_lanes * strips;
        const auto bytes = [](const ConvolutionShape& s) {
            return std::int64_t{s.height} * s.width * s.padded_channels() + s.weight_bytes();
        };
        if (bytes(shape) >= bytes(plain) || !refuse_shape(shape).empty() ||
            channels_of_task(shape) < shape.out_channels)
            return std::nullopt;
        numbers.biases = folded_channels(numbers.biases, strips, 0);
        auto& r = numbers.requantisation;
        r.factors = folded_channels(r.factors, strips, std::int16_t{1});
        r.powers = folded_channels(r.powers, strips, std::int16_t{1});
        auto s = convolution(shape, std::move(numbers));
        if (!s) return std::nullopt;
        s->macs = macs_of(plain);
        add_weights(*s, folded_weights(conv.weights.view(), conv, strips));
        plan_.folds[node.inputs[0]] = *fold;
        const std::int32_t behind = shape.out_height * strips - plain.out_height;
        if (behind > 0)
            plan_.slack[node.outputs[0]] =
                static_cast<std::uint32_t>(behind * plain.out_width * atom_lanes);
        return std::move(*s);
    }

    Or<Kind> step(const Node& node, const compiler::Convolution& of_graph) {
        const auto fine = with_fine_biases(of_graph, plan_.value(node.inputs[0]));
        const compiler::Convolution& conv = fine ? *fine : of_graph;
        auto numbers = numbers_of(*plan_.graph, node, conv, options_);
        if (!numbers) return std::unexpected(numbers.error());
        const auto shape = shape_of(*plan_.graph, node, conv);
        if (auto f = folded(node, conv, shape, *numbers)) return std::move(*f);
        auto s = convolution(shape, std::move(*numbers));
        if (!s) return std::unexpected(s.error());
        add_weights(*s, conv.weights.view());
        return std::move(*s);
    }

    Or<Kind> step(const Node& node, const compiler::AveragePool& pool) {
        auto numbers = numbers_of(*plan_.graph, node, pool, options_);
        if (!numbers) return std::unexpected(numbers.error());
        const auto shape = shape_of(*plan_.graph, node, pool);
        auto s = convolution(shape, std::move(numbers->numbers));
        if (!s) return std::unexpected(s.error());
        const auto count = static_cast<std::size_t>(shape.window.kernel_h) *
                           static_cast<std::size_t>(shape.window.kernel_w) *
                           static_cast<std::size_t>(shape.channels);
        add_weights(*s, std::vector<std::byte>(count, std::byte(numbers->weight + 128)));
        s->tables = std::move(numbers->tables);
        return std::move(*s);
    }

    Or<Kind> element(const Or<ElementStep>& step) {
        if (!step) return std::unexpected(step.error());
        return *step;
    }
    Or<Kind> step(const Node& node, const compiler::Sum& o) {
        return element(element_of(*plan_.graph, node, o));
    }
    Or<Kind> step(const Node& node, const compiler::Difference& o) {
        return element(element_of(*plan_.graph, node, o));
    }
    Or<Kind> step(const Node& node, const compiler::Product& o) {
        return element(element_of(*plan_.graph, node, o));
    }
    Or<Kind> step(const Node& node, const compiler::Rescale& o) {
        return element(element_of(*plan_.graph, node, o));
    }

    /// The input's values go through the DPU as they are.
    Or<Kind> step(const Node&, const compiler::Slice& slice) {
        constexpr ScaleAndShift one{1 << 14, 14};
        return ElementStep{
            .operation = ElementStep::Operation::copy,
            .gains = {1, 0, one, 0},
            .first_surface = static_cast<std::uint32_t>(slice.parts[0].channel / atom_lanes)};
    }

    Or<Kind> step(const Node& node, const compiler::MaxPool& pool) {
        const Value &in = plan_.value(node.inputs[0]), &out = plan_.value(node.outputs[0]);
        const auto& w = pool.window;
        const auto behind = [](std::int32_t outs, std::int32_t stride, std::int32_t kernel,
                               std::int32_t size, std::int32_t before) {
            return std::max(0, (outs - 1) * stride + kernel - size - before);
        };
        return PoolStep{.window = w,
                        .bottom = behind(out.height, w.stride_h, w.kernel_h, in.height, w.top),
                        .right = behind(out.width, w.stride_w, w.kernel_w, in.width, w.left)};
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

std::uint64_t macs_of(const ConvolutionShape& s) {
    const auto u = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    return u(s.out_height) * u(s.out_width) * u(s.window.kernel_h) * u(s.window.kernel_w) *
           u(s.out_channels) * (s.depthwise ? 1 : u(s.channels));
}

Result<Plan> lower(const Graph& graph, const compiler::Program& program, const Options& options) {
    return Lowering(graph, program, options).run();
}

}  // namespace reef::rk3588::lowering
