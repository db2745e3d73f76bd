#include "edgetpu/retarget/operator_checks.h"

#include <algorithm>
#include <optional>

#include "edgetpu/retarget/operator_graph.h"

namespace reef::edgetpu {

using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

namespace {

const Tensor& tensor_in(const model::Model& plain, TensorIndex index) {
    return plain.subgraphs.front().tensors[static_cast<std::size_t>(index)];
}

}  // namespace

bool OperatorChecks::is_modelled(std::size_t op) const {
    const Op kind = plain().subgraphs.front().operators[op].code.builtin;
    return moves_only(kind, models_.compiled.is_own()) ||
           std::ranges::find(roles_.from, op, &Requantisation::op) != roles_.from.end();
}

Status OperatorChecks::check(std::size_t index) const {
    const Operator& op = plain().subgraphs.front().operators[index];
    return models_.compiled.is_own() ? check_own(index, op) : check_vendors(index, op);
}

Status OperatorChecks::check_intermediates(std::size_t index) const {
    const auto& before = plain().subgraphs.front().operators[index].intermediates;
    const auto& after = models_.target.subgraphs.front().operators[index].intermediates;
    if (before.empty() && after.empty()) return {};
    const auto same = [&](TensorIndex a, TensorIndex b) {
        if (a == model::absent_tensor || b == model::absent_tensor) return a == b;
        return tensor_in(plain(), a).quantization == tensor_in(models_.target, b).quantization;
    };
    if (std::ranges::equal(before, after, same)) return {};
    return fail(Cause::unsupported, "values that it computes in between have other scales");
}

Status OperatorChecks::check_rescaling(const MatchedProgram& program) const {
    for (std::size_t i = 0; i < roles_.to.size(); ++i) {
        if (roles_.to[i].form != Requantisation::Form::copy || !rescales(roles_.to[i])) continue;
        const auto computes = [&](const MatchedInstruction& one) {
            return one.role == i ||
                   (rescales(roles_.from[i]) && same_values(roles_.to[one.role], roles_.to[i]) &&
                    same_values(roles_.from[one.role], roles_.from[i]));
        };
        const Requantisation* held = numbers_.held(roles_.from[i]);
        if (held != nullptr && *held == roles_.to[i]) continue;
        if (std::ranges::any_of(program, computes)) continue;
        return fail(Cause::unsupported, "it rescales, which the program has no instruction for",
                    model::place_of(models_.target.subgraphs.front(), roles_.to[i].op));
    }
    return {};
}

Status OperatorChecks::check_vendors(std::size_t index, const Operator& op) const {
    switch (op.code.builtin) {
        case Op::average_pool_2d:
            return check_border(index, op);
        case Op::add:
            return check_sum(op);
        case Op::pad:
            return check_one_quantization(op);
        case Op::resize_bilinear:
            return check_resize(op);
        case Op::logistic:
            return check_sigmoid(op);
        case Op::conv_2d:
        case Op::depthwise_conv_2d:
        case Op::fully_connected:
        case Op::reshape:
        case Op::concatenation:
            return {};
        case Op::softmax:
            return check_softmax(op);
        case Op::mul:
            if (is_modelled(index)) return {};
            break;
        case Op::quantize:
            return check_renaming(op);
        default:
            break;
    }
    return numbers_.refuse_unknown();
}

Status OperatorChecks::check_own(std::size_t index, const Operator& op) const {
    if (!is_modelled(index)) return numbers_.refuse_unknown();
    switch (op.code.builtin) {
        case Op::quantize:
        case Op::relu:
        case Op::relu6:
            return check_renaming(op);
        case Op::pad:
            REEF_CHECK(check_padding(op));
            return check_moved(op);
        case Op::concatenation:
            return check_joined(op);
        case Op::add:
        case Op::sub:
            return check_steps(index, op);
        case Op::logistic:
            return check_sigmoid(op);
        case Op::softmax:
            return check_softmax(op);
        case Op::tanh:
            return check_tanh(op);
        default:
            return moves_only(op.code.builtin, true) || op.code.builtin == Op::max_pool_2d
                       ? check_moved(op)
                       : Status{};
    }
}

Status OperatorChecks::check_moved(const Operator& op) const {
    std::optional<std::pair<float, std::int64_t>> one;
    for (const auto* list : {&op.inputs, &op.outputs})
        for (const TensorIndex index : *list) {
            if (index == model::absent_tensor) continue;
            const Tensor& tensor = tensor_in(models_.target, models_.map.at(index));
            if (!tensor.quantization || !tensor.quantization->quantized()) continue;
            const auto number = number_of(tensor);
            if (!one) one = number;
            if (*one != number)
                return fail(Cause::unsupported,
                            "its quantisation differs, and it rescales, which the program has "
                            "no instruction for");
        }
    return {};
}

Status OperatorChecks::check_padding(const Operator& op) const {
    if (!numbers_.zero_may_differ(op.inputs[0])) return {};
    const auto& graph = plain().subgraphs.front();
    const Tensor &in = tensor_in(plain(), op.inputs[0]), &out = tensor_in(plain(), op.outputs[0]);
    const bool wider = !in.shape.empty() && in.shape.back() != out.shape.back();
    const bool given =
        std::ranges::find(graph.outputs, op.outputs[0]) != graph.outputs.end() ||
        std::ranges::any_of(graph.operators, [&](const Operator& reader) {
            const Op kind = reader.code.builtin;
            return std::ranges::find(reader.inputs, op.outputs[0]) != reader.inputs.end() &&
                   kind != Op::conv_2d && kind != Op::depthwise_conv_2d;
        });
    if (!wider && !given) return {};
    return fail(Cause::unsupported,
                "its zero point may differ, and what it pads with is read by no convolution "
                "alone");
}

Status OperatorChecks::check_joined(const Operator& op) const {
    for (const TensorIndex index : op.inputs) {
        if (index == model::absent_tensor) continue;
        const auto is_output = [&](const Tensor& in, const Tensor& out) {
            return number_of(in) == number_of(out);
        };
        const bool before = is_output(tensor_in(plain(), index), tensor_in(plain(), op.outputs[0]));
        const bool after = is_output(tensor_in(models_.target, models_.map.at(index)),
                                     tensor_in(models_.target, models_.map.at(op.outputs[0])));
        if (before && !after)
            return fail(Cause::unsupported,
                        "an input rescales, which the program has no instruction for");
    }
    return {};
}

Status OperatorChecks::check_steps(std::size_t index, const Operator& op) const {
    const auto role = std::ranges::find(roles_.to, index, &Requantisation::op);
    if (role == roles_.to.end() || role->form == Requantisation::Form::sum) return {};
    const std::size_t in = plain().constant(tensor_in(plain(), op.inputs[0])).empty() ? 0 : 1;
    const auto scale = [&](TensorIndex tensor) {
        return number_of(tensor_in(models_.target, models_.map.at(tensor))).first;
    };
    if (scale(op.inputs[in]) == scale(op.outputs[0])) return {};
    return fail(Cause::unsupported, "it adds a constant and changes the scale");
}

Status OperatorChecks::check_tanh(const Operator& op) const {
    const EndNumbers to = REEF_TRY(numbers_of(op, true));
    if (to.out == std::pair<float, std::int64_t>{1.0F / 128, 128}) return {};
    return fail(Cause::unsupported, "its output's scale is not 1/128 from the middle");
}

Status OperatorChecks::check_sum(const Operator& op) const {
    const bool computed = op.inputs.size() == 2 &&
                          plain().constant(tensor_in(plain(), op.inputs[1])).empty() &&
                          plain().constant(tensor_in(plain(), op.inputs[0])).empty();
    if (!computed)
        return fail(Cause::unsupported, "its quantisation differs, and it adds a constant");
    return {};
}

Status OperatorChecks::check_border(std::size_t index, const Operator& op) const {
    const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
    const bool padded = pool != nullptr && pool->padding == model::Padding::same;
    if (!padded || !numbers_.held_zero_may_differ(index, roles_)) return {};
    return fail(Cause::unsupported,
                "its input's zero point differs, and the border of a padded pool is not known "
                "exactly");
}

Result<OperatorChecks::EndNumbers> OperatorChecks::numbers_of(const Operator& op,
                                                              bool of_target) const {
    if (op.inputs.empty() || op.outputs.empty() || op.inputs[0] == model::absent_tensor) {
        return fail(Cause::bad_input, "without input or output");
    }
    const auto at = [&](TensorIndex index) {
        return number_of(of_target ? tensor_in(models_.target, models_.map.at(index))
                                   : tensor_in(plain(), index));
    };
    return EndNumbers{at(op.inputs[0]), at(op.outputs[0])};
}

Status OperatorChecks::check_renaming(const Operator& op) const {
    const EndNumbers from = REEF_TRY(numbers_of(op, false));
    const EndNumbers to = REEF_TRY(numbers_of(op, true));
    if (from.one() == to.one()) return {};
    return fail(Cause::unsupported, from.one()
                                        ? "it rescales, which the program has no instruction for"
                                        : "it does not rescale, as the program does");
}

Status OperatorChecks::check_one_quantization(const Operator& op) const {
    const bool one = REEF_TRY(numbers_of(op, false)).one() && REEF_TRY(numbers_of(op, true)).one();
    if (one) return {};
    return fail(Cause::unsupported, "its quantisation differs, and it rescales");
}

Status OperatorChecks::check_resize(const Operator& op) const {
    REEF_CHECK(check_one_quantization(op));
    if (!numbers_.zero_may_differ(op.inputs[0])) return {};
    return fail(Cause::unsupported,
                "its input's zero point may differ, and how the program pads it is not known "
                "exactly");
}

Status OperatorChecks::check_sigmoid(const Operator& op) const {
    const EndNumbers to = REEF_TRY(numbers_of(op, true));
    if (to.out == std::pair<float, std::int64_t>{1.0F / 256, 0}) return {};
    return fail(Cause::unsupported, "its output's scale is not 1/256 from zero point 0");
}

Status OperatorChecks::check_softmax(const Operator& op) const {
    const EndNumbers to = REEF_TRY(numbers_of(op, true));
    if (to.out == std::pair<float, std::int64_t>{1.0F / 256, 0}) return {};
    return fail(Cause::unsupported, "its output's scale is not 1/256 from zero point 0");
}

}  // namespace reef::edgetpu
