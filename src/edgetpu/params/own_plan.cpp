// Which parts Reef's own compiler makes of a plain model's constants.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "edgetpu/params/own_selections.h"
#include "edgetpu/params/phase_taps.h"
#include "edgetpu/params/plain_graph.h"
#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

/// Rows of Reef's compiler, but those of words.
constexpr std::uint32_t own_lanes = 16;

/// Of a TRANSPOSE_CONV: what pixels of the result lie in front of the image's first window.
std::int32_t front_of(model::Padding padding, std::int32_t in, std::int32_t out,
                      std::int32_t kernel, std::int32_t stride) {
    if (padding == model::Padding::valid) return 0;
    return std::max((in - 1) * stride + kernel - out, 0) / 2;
}

/// A layer for each number of a constant. As a CONV_2D, one of a single channel is a dense layer.
LayerShape of_each(std::uint32_t channels, bool as_convolution) {
    const bool dense = as_convolution && channels == 1;
    return {dense ? LayerKind::convolution : LayerKind::depthwise, 1, 1, channels, channels};
}

class OwnPlanner {
  public:
    using Forms = std::vector<ParameterPart>;

    explicit OwnPlanner(const Model& plain) : graph_(plain) {}

    Status add(std::size_t index) {
        op_ = index;
        const Operator& op = graph_.operators()[index];
        REEF_CHECK(in_place(expect_channels_of_a_chip(op), graph_.place_of(index)));
        switch (op.code.builtin) {
            case Op::conv_2d:
                return add_convolution(op);
            case Op::depthwise_conv_2d:
                return add_depthwise(op);
            case Op::fully_connected:
                return add_dense(op);
            case Op::transpose_conv:
                return add_transposed(op);
            case Op::unidirectional_sequence_lstm:
                return add_lstm(op);
            case Op::mul:
            case Op::add:
            case Op::sub:
                return add_constant(op);
            case Op::prelu:
                return add_slopes(op);
            case Op::average_pool_2d:
            case Op::mean:
            case Op::sum:
                return add_window(op);
            default:
                return add_selections(op);
        }
    }

    [[nodiscard]] std::vector<Forms> take() { return std::move(parts_); }

  private:
    /// Tiles divide an image by pixels: channels of one that all of them hold nothing besides are
    /// the most that can be.
    Status expect_channels_of_a_chip(const Operator& op) const {
        constexpr std::uint64_t most = std::uint64_t{spec::tile_count} * spec::narrow_bytes;
        for (const auto* list : {&op.inputs, &op.outputs})
            for (std::size_t i = 0; i < list->size(); ++i) {
                const Tensor* tensor = graph_.tensor(*list, i);
                if (tensor == nullptr || PlainGraph::image_of(*tensor).channels <= most) continue;
                return fail(Cause::unsupported,
                            fmt::format("'{}' is {}, more channels than the chip holds: this is no "
                                        "operator of the compiled model",
                                        tensor->name, model::shape_text(tensor->shape)));
            }
        return {};
    }

    ParameterPart part(PartKind kind, const Operator& op) const {
        ParameterPart part{.kind = kind, .op = op_, .name = graph_.place_of(op_)};
        if (!op.inputs.empty()) part.input = op.inputs[0];
        if (!op.outputs.empty()) part.output = op.outputs[0];
        return part;
    }

    /// Of a layer with the weights at a position among the operator's inputs, and the bias behind
    /// them at another.
    ParameterPart layer(const Operator& op, std::size_t weights, std::size_t bias) const {
        ParameterPart layer = part(PartKind::layer, op);
        layer.weights = op.inputs[weights];
        if (op.inputs.size() > bias) layer.bias = op.inputs[bias];
        return layer;
    }

    Status add_form(Forms& forms, ParameterPart part, const LayerShape& shape,
                    const LayerVectors& vectors) const {
        part.layout = REEF_TRY(in_place(layout_of(shape, vectors, own_lanes), part.name));
        part.size_bytes = part.layout.size_bytes;
        forms.push_back(std::move(part));
        return {};
    }

    /// All taps of a word of input channels before the next word, or all input channels of a tap.
    Status add_both_orders(Forms& forms, ParameterPart part, const LayerVectors& vectors) const {
        for (const std::uint32_t block : {part.form.words(), 1U}) {
            part.form.block_words = block;
            REEF_CHECK(add_form(forms, part, stored_shape(part.form), vectors));
            if (!may_be_in_blocks(part.form)) break;
        }
        return {};
    }

    /// Nothing of weights that are no constant of bytes. Errors: those of layers whose scales do
    /// not belong to their channels.
    Result<std::optional<LayerVectors>> vectors_of(const Operator& op, std::size_t weights,
                                                   std::uint32_t channels) const {
        const Tensor& tensor = *graph_.tensor(op.inputs, weights);
        const std::size_t scales = tensor.quantization->scale.size();
        if (scales > 1 && scales != channels)
            return fail(Cause::unsupported,
                        fmt::format("{} scales for {} output channels", scales, channels),
                        graph_.place_of(op_));
        return LayerVectors{.multipliers = scales > 1, .biases = true, .zero_points = scales > 1};
    }

    Status add_convolution(const Operator& op) {
        const Tensor *weights = graph_.weights(op, 1, 4), *in = graph_.tensor(op.inputs, 0);
        if (weights == nullptr || in == nullptr) return {};
        const auto& shape = weights->shape;
        ParameterPart one = layer(op, 1, 2);
        const std::uint32_t in_channels = PlainGraph::image_of(*in).channels;
        StoredForm& form = one.form;
        form.channels = static_cast<std::uint32_t>(shape[0]);
        form.kernel_h = form.stored_h = static_cast<std::uint32_t>(shape[1]);
        form.kernel_w = form.stored_w = static_cast<std::uint32_t>(shape[2]);
        form.in_channels = in_channels;
        const auto own = static_cast<std::uint32_t>(shape[3]);
        if (own == 0 || in_channels == 0 || in_channels % own != 0) return {};
        form.groups = in_channels / own;
        if (form.channels % form.groups != 0) return {};
        const auto vectors = REEF_TRY(vectors_of(op, 1, form.channels));
        if (!graph_.fits(form)) return {};
        Forms forms;
        REEF_CHECK(add_both_orders(forms, one, *vectors));
        if (form.kernel_h == 1 && form.kernel_w == 1)
            REEF_CHECK(add_of_images(forms, one, op.inputs[0], *vectors));
        parts_.push_back(std::move(forms));
        return {};
    }

    /// A layer of one pixel that a RESHAPE made of an image is a kernel as large as the image.
    Status add_of_images(Forms& forms, ParameterPart part, TensorIndex input,
                         const LayerVectors& vectors) const {
        const std::uint32_t depth = part.form.in_channels;
        for (const PlainGraph::Image& image : graph_.images_of(input, depth)) {
            part.form.in_channels = image.channels;
            part.form.kernel_h = part.form.stored_h = image.height;
            part.form.kernel_w = part.form.stored_w = image.width;
            REEF_CHECK(add_both_orders(forms, part, vectors));
        }
        return {};
    }

    Status add_depthwise(const Operator& op) {
        const Tensor *weights = graph_.weights(op, 1, 4), *in = graph_.tensor(op.inputs, 0);
        if (weights == nullptr || in == nullptr) return {};
        const auto kernel_h = static_cast<std::uint32_t>(weights->shape[1]);
        const auto kernel_w = static_cast<std::uint32_t>(weights->shape[2]);
        const auto channels = static_cast<std::uint32_t>(weights->shape[3]);
        const std::uint32_t ins = PlainGraph::image_of(*in).channels;
        if (ins == 0 || channels % ins != 0) return {};
        const auto vectors = REEF_TRY(vectors_of(op, 1, channels));
        ParameterPart one = layer(op, 1, 2);
        Forms forms;
        // A word of results is made of a word of the input, or the layer is an ordinary one.
        if (ins > 1 && (channels == ins || ins <= 4 || ins % 4 == 0)) {
            const LayerKind kind = channels == ins ? LayerKind::depthwise : LayerKind::multiplied;
            REEF_CHECK(add_form(forms, one, {kind, kernel_h, kernel_w, ins, channels}, *vectors));
        } else {
            one.form = {.channels = channels,
                        .in_channels = ins,
                        .kernel_h = kernel_h,
                        .kernel_w = kernel_w,
                        .groups = ins,
                        .channels_last = true,
                        .stored_h = kernel_h,
                        .stored_w = kernel_w};
            if (!graph_.fits(one.form)) return {};
            REEF_CHECK(add_both_orders(forms, one, *vectors));
        }
        parts_.push_back(std::move(forms));
        return {};
    }

    Status add_dense(const Operator& op) {
        const Tensor* weights = graph_.weights(op, 1, 2);
        if (weights == nullptr) return {};
        ParameterPart one = layer(op, 1, 2);
        const auto channels = static_cast<std::uint32_t>(weights->shape[0]);
        const auto depth = static_cast<std::uint32_t>(weights->shape[1]);
        const auto vectors = REEF_TRY(vectors_of(op, 1, channels));
        Forms forms;
        REEF_CHECK(
            add_form(forms, one, {LayerKind::fully_connected, 1, 1, depth, channels}, *vectors));
        one.form.channels = channels;
        one.form.in_channels = depth;
        REEF_CHECK(add_of_images(forms, one, op.inputs[0], *vectors));
        parts_.push_back(std::move(forms));
        return {};
    }

    /// An ordinary layer for each phase of the result, whose taps are turned round.
    Status add_transposed(const Operator& op) {
        const auto* options = std::get_if<model::TransposeConvOptions>(&op.options);
        const Tensor *weights = graph_.weights(op, 1, 4), *in = graph_.tensor(op.inputs, 2),
                     *out = graph_.tensor(op.outputs, 0);
        if (options == nullptr || weights == nullptr || in == nullptr || out == nullptr ||
            options->stride_h < 1 || options->stride_w < 1)
            return {};
        ParameterPart one = layer(op, 1, 3);
        one.input = op.inputs[2];
        const auto& shape = weights->shape;
        one.form.channels = static_cast<std::uint32_t>(shape[0]);
        one.form.in_channels = static_cast<std::uint32_t>(shape[3]);
        one.form.kernel_h = static_cast<std::uint32_t>(shape[1]);
        one.form.kernel_w = static_cast<std::uint32_t>(shape[2]);
        const auto vectors = REEF_TRY(vectors_of(op, 1, one.form.channels));
        if (!graph_.fits(one.form)) return {};
        const auto small = PlainGraph::image_of(*in).sides(),
                   large = PlainGraph::image_of(*out).sides();
        const std::int32_t top =
            front_of(options->padding, small[0], large[0], shape[1], options->stride_h);
        const std::int32_t left =
            front_of(options->padding, small[1], large[1], shape[2], options->stride_w);
        const std::string name = one.name;
        for (std::int32_t y = 0; y < std::min(options->stride_h, large[0]); ++y)
            for (std::int32_t x = 0; x < std::min(options->stride_w, large[1]); ++x) {
                const auto rows = taps_of_phase(y, top, options->stride_h, shape[1]);
                const auto columns = taps_of_phase(x, left, options->stride_w, shape[2]);
                StoredForm& form = one.form;
                form.stored_h = static_cast<std::uint32_t>(rows.stored());
                form.stored_w = static_cast<std::uint32_t>(columns.stored());
                form.first_h =
                    rows.count == 0 ? form.kernel_h : static_cast<std::uint32_t>(rows.tap(0));
                form.first_w =
                    columns.count == 0 ? form.kernel_w : static_cast<std::uint32_t>(columns.tap(0));
                form.step_h = -options->stride_h;
                form.step_w = -options->stride_w;
                one.name = fmt::format("{}: phase {}, {}", name, y, x);
                Forms forms;
                REEF_CHECK(add_both_orders(forms, one, *vectors));
                parts_.push_back(std::move(forms));
            }
        return {};
    }

    /// Inputs 1 to 4 are the gates' input weights, 5 to 8 the recurrent ones, 12 to 15 the biases.
    Status add_lstm(const Operator& op) {
        for (const bool recurrent : {false, true}) {
            ParameterPart gates = part(PartKind::layer, op);
            gates.name +=
                recurrent ? ": recurrent weights of all gates" : ": input weights of all gates";
            for (const std::size_t gate : StackedGates::order) {
                const std::size_t at = (recurrent ? 5 : 1) + gate;
                const Tensor* weights = graph_.weights(op, at, 2);
                // Gates of one shape, each of one scale, are what the compiler takes.
                if (weights == nullptr || weights->quantization->scale.size() != 1) return {};
                if (!gates.stacked.empty() &&
                    weights->shape != graph_.tensor_at(gates.stacked[0].weights).shape)
                    return {};
                gates.stacked.push_back({op.inputs[at], model::absent_tensor});
                if (!recurrent && op.inputs.size() > 12 + gate)
                    gates.stacked.back().bias = op.inputs[12 + gate];
            }
            gates.weights = gates.stacked[0].weights;
            gates.bias = gates.stacked[0].bias;
            // What the step before gave has the result's numbers.
            if (recurrent) gates.input = gates.output;
            const Tensor& first = graph_.tensor_at(gates.weights);
            const auto units = static_cast<std::uint32_t>(first.shape[0]);
            const auto depth = static_cast<std::uint32_t>(first.shape[1]);
            if (StackedGates::channels(units) != units)
                gates.form = {.channels = 4 * units,
                              .in_channels = depth,
                              .kernel_h = 1,
                              .kernel_w = 1,
                              .stored_h = 1,
                              .stored_w = 1,
                              .row = units};
            const LayerShape shape =
                gates.form.as_is() ? LayerShape{LayerKind::fully_connected, 1, 1, depth, 4 * units}
                                   : stored_shape(gates.form);
            Forms forms;
            REEF_CHECK(add_form(forms, std::move(gates), shape,
                                {.multipliers = true, .biases = !recurrent, .zero_points = true}));
            parts_.push_back(std::move(forms));
        }
        return {};
    }

    /// A depthwise layer of the image, or of its elements as channels of one pixel: what is added
    /// is its biases; factors are its weights, or, of the channels of an image, its multipliers.
    Status add_constant(const Operator& op) {
        const auto at = graph_.constant_of_pair(op);
        if (!at || !graph_.quantized(op.inputs, *at)) return {};
        const Tensor &value = *graph_.tensor(op.inputs, *at),
                     &in = *graph_.tensor(op.inputs, 1 - *at);
        const auto image = PlainGraph::image_of(in);
        const auto count = static_cast<std::uint32_t>(value.element_count());
        const bool by_channel = count == image.channels && !value.shape.empty() &&
                                value.shape.back() == static_cast<std::int32_t>(image.channels);
        const bool factor = op.code.builtin == Op::mul;
        const bool in_scales = factor && by_channel && image.pixels() != 1;
        const bool one_for_all = count == 1 && !by_channel;
        ParameterPart one = part(!factor       ? PartKind::subtrahend
                                 : in_scales   ? PartKind::multipliers
                                 : one_for_all ? PartKind::factor
                                               : PartKind::layer,
                                 op);
        one.input = op.inputs[1 - *at];
        one.weights = op.inputs[*at];
        one.count = one_for_all ? image.channels : count;
        const bool multiplied = in_scales && count > 1;
        Forms forms;
        REEF_CHECK(
            add_form(forms, std::move(one), of_each(one_for_all ? image.channels : count, true),
                     {.multipliers = multiplied, .biases = true, .zero_points = multiplied}));
        parts_.push_back(std::move(forms));
        return {};
    }

    Status add_slopes(const Operator& op) {
        if (!graph_.quantized(op.inputs, 1) || graph_.tensor(op.inputs, 0) == nullptr) return {};
        const Tensor& slopes = *graph_.tensor(op.inputs, 1);
        const auto channels = PlainGraph::image_of(*graph_.tensor(op.inputs, 0)).channels;
        ParameterPart one =
            part(slopes.element_count() == 1 ? PartKind::factor : PartKind::layer, op);
        one.weights = op.inputs[1];
        one.count = channels;
        Forms forms;
        REEF_CHECK(add_form(forms, std::move(one), of_each(channels, false), {.biases = true}));
        parts_.push_back(std::move(forms));
        return {};
    }

    /// Some programs sum up a window by a layer of ones.
    Status add_window(const Operator& op) {
        const Tensor* in = graph_.tensor(op.inputs, 0);
        if (in == nullptr) return {};
        const auto image = PlainGraph::image_of(*in);
        LayerShape shape{LayerKind::depthwise, image.height, image.width, image.channels,
                         image.channels};
        if (const auto* pool = std::get_if<model::Pool2dOptions>(&op.options)) {
            shape.kernel_h = static_cast<std::uint32_t>(pool->filter_h);
            shape.kernel_w = static_cast<std::uint32_t>(pool->filter_w);
        }
        if (!layout_of(shape, {.biases = true}, own_lanes)) return {};
        Forms forms;
        REEF_CHECK(add_form(forms, part(PartKind::ones, op), shape, {.biases = true}));
        parts_.push_back(std::move(forms));
        return {};
    }

    Status add_selections(const Operator& op) {
        for (const Selection& one : own_selections_of(graph_, op)) {
            const auto outs = static_cast<std::uint32_t>(one.sources.size());
            const std::uint32_t words = (one.in_channels + 3) / 4;
            const LayerShape shape{LayerKind::convolution, 1, 1, one.taps * words * 4, outs};
            if (!layout_of(shape, {.biases = true}, own_lanes)) continue;
            Forms forms;
            for (const bool by_words : {false, true}) {
                ParameterPart matrix = part(PartKind::selection, op);
                for (const std::uint32_t source : one.sources) {
                    const std::uint32_t tap = source / one.in_channels;
                    const std::uint32_t channel = source % one.in_channels, word = channel / 4;
                    const std::uint32_t row = by_words ? word * one.taps + tap : tap * words + word;
                    matrix.sources.push_back(row * 4 + channel % 4);
                }
                REEF_CHECK(add_form(forms, std::move(matrix), shape, {.biases = true}));
                if (one.taps == 1 || words == 1) break;
            }
            parts_.push_back(std::move(forms));
        }
        return {};
    }

    PlainGraph graph_;
    std::size_t op_ = 0;
    std::vector<Forms> parts_;
};

}  // namespace

Result<std::vector<std::vector<ParameterPart>>> plan_own_parameters(
    const Model& plain, const std::vector<bool>& on_chip) {
    if (plain.subgraphs.empty()) return fail(Cause::bad_input, "no subgraph");
    if (on_chip.size() != plain.subgraphs.front().operators.size())
        return fail(Cause::bad_argument, fmt::format("{} places for {} operators", on_chip.size(),
                                                     plain.subgraphs.front().operators.size()));
    OwnPlanner planner(plain);
    for (std::size_t i = 0; i < on_chip.size(); ++i)
        if (on_chip[i]) REEF_CHECK(planner.add(i));
    return planner.take();
}

}  // namespace reef::edgetpu
