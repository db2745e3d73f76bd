#include "reef/edgetpu/parameter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

#include "edgetpu/params/selections.h"
#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/package.h"
#include "reef/model/names.h"

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Subgraph;
using model::Tensor;
using model::TensorIndex;

bool one_byte(const Tensor& tensor) {
    return tensor.type == ElementType::int8 || tensor.type == ElementType::uint8;
}

bool quantized(const Tensor& tensor) {
    return one_byte(tensor) && tensor.quantization && tensor.quantization->quantized();
}

std::uint32_t dimension(const Tensor& tensor, std::size_t index) {
    return static_cast<std::uint32_t>(tensor.shape[index]);
}

std::int32_t channels(const Tensor& tensor) {
    return tensor.shape.empty() ? 1 : tensor.shape.back();
}

/// The plan of one model, operator by operator.
class Planner {
  public:
    explicit Planner(const Model& plain) : plain_(plain), graph_(plain.subgraphs.front()) {}

    Status add(std::size_t index) {
        op_ = index;
        const Operator& op = graph_.operators[index];
        switch (op.code.builtin) {
            case Op::conv_2d:
            case Op::depthwise_conv_2d:
            case Op::fully_connected:
                return add_layer(op);
            case Op::softmax:
                return add_softmax(op);
            case Op::pad:
            case Op::reshape:
            case Op::transpose:
            case Op::split:
            case Op::concatenation:
                for (Selection& one : selections_of(plain_, op_)) add_selection(op, std::move(one));
                return {};
            case Op::sub:
                return add_subtrahend(op);
            case Op::mul:
                return add_factor(op);
            case Op::unidirectional_sequence_lstm:
                return add_lstm(op);
            default:
                return {};
        }
    }

    [[nodiscard]] std::vector<ParameterPart> take() { return std::move(parts_); }

  private:
    const Tensor* tensor(const std::vector<TensorIndex>& list, std::size_t position) const {
        if (position >= list.size() || list[position] == model::absent_tensor) return nullptr;
        return &graph_.tensors[static_cast<std::size_t>(list[position])];
    }

    bool constant(const Tensor* tensor) const {
        return tensor != nullptr && !plain_.constant(*tensor).empty();
    }

    ParameterPart part(PartKind kind, const Operator& op) const {
        ParameterPart part{.kind = kind, .op = op_, .name = model::place_of(graph_, op_)};
        if (!op.inputs.empty()) part.input = op.inputs[0];
        if (!op.outputs.empty()) part.output = op.outputs[0];
        return part;
    }

    Status add_layer(const Operator& op) {
        const Tensor* weights = tensor(op.inputs, 1);
        if (!constant(weights) || !quantized(*weights)) return {};
        LayerShape shape;
        if (op.code.builtin == Op::fully_connected) {
            if (weights->shape.size() != 2) return {};
            shape = {LayerKind::fully_connected, 1, 1, dimension(*weights, 1),
                     dimension(*weights, 0)};
        } else {
            if (weights->shape.size() != 4) return {};
            shape = {LayerKind::convolution, dimension(*weights, 1), dimension(*weights, 2),
                     dimension(*weights, 3), dimension(*weights, 0)};
        }
        if (op.code.builtin == Op::depthwise_conv_2d) {
            const auto* input = tensor(op.inputs, 0);
            shape.out_channels = shape.in_channels;
            shape.in_channels = static_cast<std::uint32_t>(input == nullptr ? 0 : channels(*input));
            shape.kind = shape.in_channels == shape.out_channels ? LayerKind::depthwise
                         : shape.in_channels == 1                ? LayerKind::widening
                                                                 : LayerKind::multiplied;
        }
        ParameterPart layer = part(PartKind::layer, op);
        layer.weights = op.inputs[1];
        if (op.inputs.size() > 2) layer.bias = op.inputs[2];
        layer.form = stored_form(graph_, op);
        return add_laid_out(std::move(layer), shape);
    }

    Status add_laid_out(ParameterPart layer, LayerShape shape) {
        const Tensor& weights = graph_.tensors[static_cast<std::size_t>(layer.weights)];
        const std::size_t scales = weights.quantization->scale.size();
        if (scales > 1 && scales != shape.out_channels) {
            return fail(Cause::unsupported,
                        fmt::format("{} scales for {} output channels", scales, shape.out_channels),
                        layer.name);
        }
        if (!layer.form.as_is()) shape = stored_shape(layer.form);
        layer.layout =
            REEF_TRY(in_place(layout_of(shape, layer_vectors(plain_, layer)), layer.name));
        layer.size_bytes = layer.layout.size_bytes;
        parts_.push_back(std::move(layer));
        return {};
    }

    Status add_softmax(const Operator& op) {
        const Tensor* logits = tensor(op.inputs, 0);
        if (logits == nullptr || !quantized(*logits) || channels(*logits) % 4 == 0) return {};
        ParameterPart table = part(PartKind::softmax_table, op);
        table.count = static_cast<std::uint32_t>(channels(*logits));
        table.unit_line = logits->type == ElementType::uint8;
        table.size_bytes = softmax_table_size(table.count, table.unit_line);
        parts_.push_back(std::move(table));
        return {};
    }

    void add_selection(const Operator& op, Selection selection) {
        const auto outs = static_cast<std::uint32_t>(selection.sources.size());
        const auto layout = layout_of({selection.kind, 1, 1, selection.in_channels, outs},
                                      {.biases = selection.biases});
        // Larger than any memory: the operator is done in another way, or not by the chip.
        if (!layout) return;
        ParameterPart matrix = part(PartKind::selection, op);
        matrix.layout = *layout;
        matrix.size_bytes = layout->size_bytes;
        matrix.sources = std::move(selection.sources);
        parts_.push_back(std::move(matrix));
    }

    Status add_subtrahend(const Operator& op) {
        const Tensor* value = tensor(op.inputs, 1);
        if (!constant(value) || !quantized(*value) || value->element_count() < 2) return {};
        ParameterPart part_of = part(PartKind::subtrahend, op);
        part_of.weights = op.inputs[1];
        part_of.count = static_cast<std::uint32_t>(value->element_count());
        part_of.size_bytes = subtrahend_size(part_of.count);
        parts_.push_back(std::move(part_of));
        return {};
    }

    Status add_factor(const Operator& op) {
        const Tensor* value = tensor(op.inputs, 1);
        const Tensor* in = tensor(op.inputs, 0);
        if (!constant(value) || !quantized(*value) || value->element_count() < 2) return {};
        const bool by_channel = in != nullptr && quantized(*in) &&
                                value->element_count() == channels(*in) &&
                                channels(*value) == channels(*in);
        ParameterPart part_of = part(by_channel ? PartKind::multipliers : PartKind::factor, op);
        part_of.weights = op.inputs[1];
        part_of.count = static_cast<std::uint32_t>(value->element_count());
        part_of.size_bytes = by_channel ? channel_multipliers_size(part_of.count) : part_of.count;
        parts_.push_back(std::move(part_of));
        return {};
    }

    /// [batch][steps][features], when the steps are computed one after the other.
    void add_exchange(const Operator& op, const Tensor* sequence) {
        if (sequence == nullptr || sequence->shape.size() != 3) return;
        const bool first = sequence == tensor(op.inputs, 0);
        // The input is taken apart step by step, the output is put together whole.
        const std::uint32_t steps = first ? 1 : dimension(*sequence, 1);
        for (Selection& one : exchange(steps, dimension(*sequence, 2)))
            add_selection(op, std::move(one));
    }

    /// Where the steps' results go; real zeros of int8 numbers, whatever their zero point.
    void add_fill(const Operator& op, const Tensor* sequence) {
        if (sequence == nullptr || sequence->element_count() < 1) return;
        ParameterPart fill = part(PartKind::fill, op);
        fill.count = static_cast<std::uint32_t>(sequence->element_count());
        fill.size_bytes = fill.count;
        parts_.push_back(std::move(fill));
    }

    /// Inputs 1 to 4 are the gates' input weights, 5 to 8 the recurrent ones, 12 to 15 the biases,
    /// each in the order input, forget, cell, output.
    Status add_lstm(const Operator& op) {
        add_exchange(op, tensor(op.inputs, 0));
        add_fill(op, tensor(op.outputs, 0));
        static constexpr std::string_view gates[] = {"input", "forget", "cell", "output"};
        for (std::size_t gate = 0; gate < 4; ++gate) {
            for (const bool recurrent : {false, true}) {
                const std::size_t position = (recurrent ? 5 : 1) + gate;
                const Tensor* weights = tensor(op.inputs, position);
                if (!constant(weights) || !quantized(*weights) || weights->shape.size() != 2) {
                    continue;
                }
                ParameterPart layer = part(PartKind::layer, op);
                layer.name += fmt::format(": {} gate, {} weights", gates[gate],
                                          recurrent ? "recurrent" : "input");
                layer.weights = op.inputs[position];
                if (!recurrent && op.inputs.size() > 12 + gate) layer.bias = op.inputs[12 + gate];
                layer.has_multiplier = false;
                REEF_CHECK(add_laid_out(std::move(layer),
                                        {LayerKind::fully_connected, 1, 1, dimension(*weights, 1),
                                         dimension(*weights, 0)}));
            }
        }
        add_exchange(op, tensor(op.outputs, 0));
        return {};
    }

    const Model& plain_;
    const Subgraph& graph_;
    std::size_t op_ = 0;
    std::vector<ParameterPart> parts_;
};

Status check_subgraph(const Model& plain) {
    if (!plain.subgraphs.empty()) return {};
    return fail(Cause::bad_input, "no subgraph");
}

/// What a compiled model's operators on the CPU compute, by name; a name as often as it is there.
std::multiset<std::string> names_on_cpu(const Subgraph& compiled) {
    std::multiset<std::string> names;
    for (const Operator& op : compiled.operators) {
        if (is_compiled(op)) continue;
        for (const TensorIndex out : op.outputs)
            names.insert(compiled.tensors[static_cast<std::size_t>(out)].name);
    }
    return names;
}

/// As the compiled model calls the plain one's tensors: Reef's compiler gives each a name of its
/// own, the vendor's leaves names that are shared.
std::vector<std::string> names_for(const Subgraph& plain,
                                   const std::multiset<std::string>& on_cpu) {
    auto distinct = model::distinct_names(plain);
    const std::set<std::string_view> known(distinct.begin(), distinct.end());
    const bool by_distinct = std::ranges::all_of(on_cpu, [&](const std::string& name) {
        return on_cpu.count(name) == 1 && known.contains(name);
    });
    if (by_distinct) return distinct;
    std::vector<std::string> own;
    for (const model::Tensor& tensor : plain.tensors) own.push_back(tensor.name);
    return own;
}

}  // namespace

Result<std::vector<bool>> operators_on_chip(const Model& plain, const Model& compiled) {
    REEF_CHECK(check_subgraph(plain));
    REEF_CHECK(check_subgraph(compiled));
    const Subgraph& graph = compiled.subgraphs.front();
    if (std::ranges::none_of(graph.operators, [](const Operator& op) { return is_compiled(op); }))
        return fail(Cause::bad_input, "the model is not compiled: it has no edgetpu-custom-op", {},
                    "give the file that the Edge TPU compiler wrote");
    const auto on_cpu = names_on_cpu(graph);
    const Subgraph& source = plain.subgraphs.front();
    const auto names = names_for(source, on_cpu);
    std::vector<bool> on_chip;
    on_chip.reserve(source.operators.size());
    for (const Operator& op : source.operators) {
        on_chip.push_back(!is_compiled(op) && std::ranges::none_of(op.outputs, [&](TensorIndex i) {
            return on_cpu.contains(names[static_cast<std::size_t>(i)]);
        }));
    }
    return on_chip;
}

Result<std::vector<ParameterPart>> plan_parameters(const Model& plain,
                                                   const std::vector<bool>& on_chip) {
    REEF_CHECK(check_subgraph(plain));
    Planner planner(plain);
    const std::size_t count = plain.subgraphs.front().operators.size();
    if (on_chip.size() != count) {
        return fail(Cause::bad_argument,
                    fmt::format("{} places for {} operators", on_chip.size(), count));
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (on_chip[i]) REEF_CHECK(planner.add(i));
    }
    return planner.take();
}

}  // namespace reef::edgetpu
