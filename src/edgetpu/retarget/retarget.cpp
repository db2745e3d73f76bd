#include "reef/edgetpu/retarget.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "edgetpu/retarget/architecture.h"
#include "edgetpu/retarget/program_alignment.h"
#include "edgetpu/retarget/program_flow.h"
#include "edgetpu/retarget/program_rewrite.h"
#include "edgetpu/retarget/template_numbers.h"
#include "edgetpu/retarget/template_recovery.h"
#include "edgetpu/retarget/tensor_names.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/model/part.h"

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Quantization;
using model::Tensor;
using model::TensorIndex;

const Tensor& tensor_of(const Model& plain, TensorIndex index) {
    return plain.subgraphs.front().tensors[static_cast<std::size_t>(index)];
}

/// One retargeting, step by step; `template_` holds the compiled model, its blobs and a plain model
/// of its architecture. What is known of the template's own numbers is the business of `numbers`.
class Retargeting {
  public:
    Retargeting(CompiledParameters& compiled, const Model& target, const TensorMap& map,
                const RetargetOptions& options, std::unique_ptr<TemplateNumbers> numbers)
        : template_(compiled),
          target_(target),
          map_(map),
          options_(options),
          names_(compiled),
          numbers_(std::move(numbers)) {
        result_.model = compiled.compiled();
        if (compiled.ends()) result_.first_operator = compiled.first_operator();
    }

    /// The program is the target's own already; what the file has beside it may be another's.
    void doubt_source() { source_is_sure_ = false; }

    Result<Retargeted> run() {
        REEF_CHECK(replace_parameters());
        find_roles();
        REEF_CHECK(check_unmodelled());
        choices_ = REEF_TRY(numbers_->match(roles(), unmodelled_));
        std::vector<Package> packages;
        for (std::size_t i = 0; i < template_.operators().size(); ++i)
            packages.push_back(REEF_TRY(in_place(package_of(i), template_.operators()[i].place)));
        result_.model = REEF_TRY(with_packages(std::move(result_.model), template_.operators(),
                                               std::move(packages), options_.token));
        replace_tensors();
        return std::move(result_);
    }

  private:
    const Model& plain() const { return template_.plain(); }
    RetargetRoles roles() const { return {from_, to_}; }

    bool quantization_changes(TensorIndex index) const {
        return index != model::absent_tensor && numbers_->may_differ(index);
    }

    /// The part with the target's tensors and the template's layout.
    ParameterPart in_target(ParameterPart part) const {
        for (TensorIndex* index : {&part.input, &part.weights, &part.bias, &part.output}) {
            if (*index != model::absent_tensor) *index = map_.at(*index);
        }
        for (LayerTensors& layer : part.stacked)
            for (TensorIndex* index : {&layer.weights, &layer.bias})
                if (*index != model::absent_tensor) *index = map_.at(*index);
        return part;
    }

    Status replace_parameters() {
        const Placement& placement = template_.placement();
        for (const ParameterPart& part : template_.parts())
            target_parts_.push_back(in_target(part));
        REEF_CHECK(numbers_->check_parameters());
        for (const PlacedPart& placed : placement.placed) {
            const MutableBytes bytes = template_.bytes_of(placed);
            std::vector<std::byte> fresh(bytes.size());
            REEF_CHECK(encode_part(target_, target_parts_[placed.part], fresh));
            for (std::size_t i = 0; i < fresh.size(); ++i) {
                if (fresh[i] == bytes[i]) continue;
                ++result_.changed_parameter_bytes;
                bytes[i] = fresh[i];
            }
        }
        return {};
    }

    /// Operators whose instruction values are not known exactly must not change.
    Status check_unmodelled() {
        const auto& graph = plain().subgraphs.front();
        bool any = result_.changed_parameter_bytes > 0;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (!template_.on_chip()[i]) continue;
            const Operator& op = graph.operators[i];
            REEF_CHECK(in_place(check_intermediates(i), model::place_of(graph, i)));
            unmodelled_ = unmodelled_ || !is_modelled(i, op);
            const auto changes = [this](TensorIndex index) { return quantization_changes(index); };
            if (std::ranges::none_of(op.inputs, changes) &&
                std::ranges::none_of(op.outputs, changes)) {
                continue;
            }
            any = true;
            REEF_CHECK(in_place(check_modelled(i, op), model::place_of(graph, i)));
        }
        const Placement& placement = template_.placement();
        if (!any || (placement.unexplained.empty() && placement.missing.empty())) return {};
        std::size_t bytes = 0;
        for (const BlobRange& range : placement.unexplained) bytes += range.size_bytes;
        return fail(Cause::unsupported,
                    fmt::format("{} bytes of the parameters are not understood, so that they "
                                "cannot be made for other weights",
                                bytes),
                    {}, "reef weights verify lists them");
    }

    /// Whether the values of its instructions are known. Those of another are left alone, since its
    /// quantisation stays.
    bool is_modelled(std::size_t index, const Operator& op) const {
        return moves_only(op.code.builtin, template_.is_own()) ||
               std::ranges::find(from_, index, &Requantisation::op) != from_.end();
    }

    Status check_modelled(std::size_t index, const Operator& op) const {
        if (template_.is_own()) return check_own(index, op);
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
            case Op::softmax:
                return {};
            case Op::mul:
                if (is_modelled(index, op)) return {};
                break;
            case Op::quantize:
                return check_renaming(op);
            default:
                break;
        }
        return numbers_->refuse_unknown();
    }

    /// Of a program of Reef's compiler: what it takes of an operator must hold for the target, too.
    Status check_own(std::size_t index, const Operator& op) const {
        if (!is_modelled(index, op)) return numbers_->refuse_unknown();
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
            case Op::tanh:
                return check_tanh(op);
            default:
                return moves_only(op.code.builtin, true) || op.code.builtin == Op::max_pool_2d
                           ? check_moved(op)
                           : Status{};
        }
    }

    /// All tensors that it computes from and to have one scale and zero point.
    Status check_moved(const Operator& op) const {
        std::optional<std::pair<float, std::int64_t>> one;
        for (const auto* list : {&op.inputs, &op.outputs})
            for (const TensorIndex index : *list) {
                if (index == model::absent_tensor) continue;
                const Tensor& tensor = tensor_of(target_, map_.at(index));
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

    /// What it pads with is filled in for the layers that read it; others read it as it is.
    Status check_padding(const Operator& op) const {
        if (!numbers_->zero_may_differ(op.inputs[0])) return {};
        const auto& graph = plain().subgraphs.front();
        const Tensor &in = tensor_of(plain(), op.inputs[0]),
                     &out = tensor_of(plain(), op.outputs[0]);
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

    /// An input of the output's numbers may be made in its place, without an instruction.
    Status check_joined(const Operator& op) const {
        for (const TensorIndex index : op.inputs) {
            if (index == model::absent_tensor) continue;
            const auto is_output = [&](const Tensor& in, const Tensor& out) {
                return number_of(in) == number_of(out);
            };
            const bool before =
                is_output(tensor_of(plain(), index), tensor_of(plain(), op.outputs[0]));
            const bool after = is_output(tensor_of(target_, map_.at(index)),
                                         tensor_of(target_, map_.at(op.outputs[0])));
            if (before && !after)
                return fail(Cause::unsupported,
                            "an input rescales, which the program has no instruction for");
        }
        return {};
    }

    /// A constant is added as whole steps of the input, which are the output's.
    Status check_steps(std::size_t index, const Operator& op) const {
        const auto role = std::ranges::find(to_, index, &Requantisation::op);
        if (role == to_.end() || role->form == Requantisation::Form::sum) return {};
        const std::size_t in =
            template_.plain().constant(tensor_of(plain(), op.inputs[0])).empty() ? 0 : 1;
        const auto scale = [&](TensorIndex tensor) {
            return number_of(tensor_of(target_, map_.at(tensor))).first;
        };
        if (scale(op.inputs[in]) == scale(op.outputs[0])) return {};
        return fail(Cause::unsupported, "it adds a constant and changes the scale");
    }

    Status check_tanh(const Operator& op) const {
        const EndNumbers to = REEF_TRY(numbers_of(op, true));
        if (to.out == std::pair<float, std::int64_t>{1.0F / 128, 128}) return {};
        return fail(Cause::unsupported, "its output's scale is not 1/128 from the middle");
    }

    /// What an operator computes in between, of which no instruction is known.
    Status check_intermediates(std::size_t index) const {
        const auto& before = plain().subgraphs.front().operators[index].intermediates;
        const auto& after = target_.subgraphs.front().operators[index].intermediates;
        if (before.empty() && after.empty()) return {};
        const auto same = [&](TensorIndex a, TensorIndex b) {
            if (a == model::absent_tensor || b == model::absent_tensor) return a == b;
            return tensor_of(plain(), a).quantization == tensor_of(target_, b).quantization;
        };
        if (std::ranges::equal(before, after, same)) return {};
        return fail(Cause::unsupported, "values that it computes in between have other scales");
    }

    Status check_sum(const Operator& op) const {
        const bool computed =
            op.inputs.size() == 2 &&
            template_.plain().constant(tensor_of(plain(), op.inputs[1])).empty() &&
            template_.plain().constant(tensor_of(plain(), op.inputs[0])).empty();
        if (!computed)
            return fail(Cause::unsupported, "its quantisation differs, and it adds a constant");
        return {};
    }

    /// The border of a padded pool is no part of its sums; how the program leaves it out is not
    /// known exactly.
    Status check_border(std::size_t index, const Operator& op) const {
        const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
        const bool padded = pool != nullptr && pool->padding == model::Padding::same;
        if (!padded || !numbers_->held_zero_may_differ(index, roles())) return {};
        return fail(Cause::unsupported,
                    "its input's zero point differs, and the border of a padded pool is not known "
                    "exactly");
    }

    struct EndNumbers {
        std::pair<float, std::int64_t> in, out;
        [[nodiscard]] bool one() const { return in == out && in.first != 0; }
    };

    Result<EndNumbers> numbers_of(const Operator& op, bool of_target) const {
        if (op.inputs.empty() || op.outputs.empty() || op.inputs[0] == model::absent_tensor) {
            return fail(Cause::bad_input, "without input or output");
        }
        const auto at = [&](TensorIndex index) {
            return number_of(of_target ? tensor_of(target_, map_.at(index))
                                       : tensor_of(plain(), index));
        };
        return EndNumbers{at(op.inputs[0]), at(op.outputs[0])};
    }

    /// A QUANTIZE that rescales is an instruction, one that only renames is none.
    Status check_renaming(const Operator& op) const {
        const EndNumbers from = REEF_TRY(numbers_of(op, false));
        const EndNumbers to = REEF_TRY(numbers_of(op, true));
        if (from.one() == to.one()) return {};
        return fail(Cause::unsupported,
                    from.one() ? "it rescales, which the program has no instruction for"
                               : "it does not rescale, as the program does");
    }

    /// PAD is the border of the layer that reads it.
    Status check_one_quantization(const Operator& op) const {
        const bool one =
            REEF_TRY(numbers_of(op, false)).one() && REEF_TRY(numbers_of(op, true)).one();
        if (one) return {};
        return fail(Cause::unsupported, "its quantisation differs, and it rescales");
    }

    /// No scale enters, but the border is filled with the zero point.
    Status check_resize(const Operator& op) const {
        REEF_CHECK(check_one_quantization(op));
        if (!numbers_->zero_may_differ(op.inputs[0])) return {};
        return fail(Cause::unsupported,
                    "its input's zero point may differ, and how the program pads it is not known "
                    "exactly");
    }

    Status check_sigmoid(const Operator& op) const {
        const EndNumbers to = REEF_TRY(numbers_of(op, true));
        if (to.out == std::pair<float, std::int64_t>{1.0F / 256, 0}) return {};
        return fail(Cause::unsupported, "its output's scale is not 1/256 from zero point 0");
    }

    void find_roles() {
        const bool own = template_.is_own();
        from_ = requantisations(plain(), template_.on_chip(), template_.parts(), own);
        to_ = requantisations(target_, template_.on_chip(), target_parts_, own);
    }

    Result<Package> package_of(std::size_t index) {
        Package package = template_.operators()[index].package;
        for (const CompiledParameters::Blob& blob : template_.blobs()) {
            Executable& executable = package.executables[blob.executable];
            if (blob.op == index && !equal_bytes(executable.parameters.view(), blob.bytes)) {
                executable.parameters = SharedBytes::copy_of(blob.bytes);
            }
        }
        for (std::size_t i = 0; i < package.executables.size(); ++i) {
            const std::string place = fmt::format("executable {}", i);
            const auto borders = REEF_TRY(in_place(borders_of(index, i), place));
            for (std::size_t j = 0; j < package.executables[i].bitstreams.size(); ++j) {
                const auto its = borders.find(j);
                REEF_CHECK(
                    in_place(replace_instructions(
                                 {index, i, j, {}}, package.executables[i].bitstreams[j],
                                 its == borders.end() ? std::vector<BorderFill>{} : its->second),
                             place));
            }
            REEF_CHECK(in_place(replace_layers(package.executables[i]), place));
        }
        return package;
    }

    static bool is_in(const TensorInstruction& at, std::size_t op, std::size_t executable) {
        return at.op == op && at.executable == executable;
    }

    /// `where`: a bitstream.
    Status replace_instructions(const TensorInstruction& where, InstructionBitstream& stream,
                                const std::vector<BorderFill>& borders) {
        std::vector<Replacement> replacements;
        for (const MatchedInstruction& one : choices_) {
            const TensorInstruction& at = one.at;
            if (!is_in(at, where.op, where.executable) || at.bitstream != where.bitstream) continue;
            replacements.push_back({at.instruction.word, numbers_->held(from_[one.role]),
                                    &to_[one.role], one.second_first});
        }
        const Bytes old = stream.instructions.view();
        std::vector<std::byte> bytes(old.begin(), old.end());
        const std::size_t changed = REEF_TRY(rewrite_program(bytes, replacements, borders));
        result_.changed_instructions += changed;
        if (changed > 0) stream.instructions = SharedBytes::copy_of(bytes);
        return {};
    }

    /// Fills that layers read whose zero points change, by bitstream.
    Result<std::map<std::size_t, std::vector<BorderFill>>> borders_of(std::size_t op,
                                                                      std::size_t executable) {
        std::map<std::size_t, std::vector<BorderFill>> borders;
        for (const MatchedInstruction& one : choices_) {
            const Requantisation& to = to_[one.role];
            if (!is_in(one.at, op, executable) || to.form != Requantisation::Form::layer) continue;
            const std::int32_t held = typed_tensor(one.at.instruction).in_zero;
            if (held == to.in_zero) continue;
            for (const auto& fill : REEF_TRY(fills_read_by(one.at)))
                borders[fill.bitstream].push_back({fill.word, to.op, held, *to.in_zero});
        }
        return borders;
    }

    Result<std::vector<trace::InstructionPlace>> fills_read_by(const TensorInstruction& at) {
        if (!flow_) {
            flow_ = REEF_TRY(program_flow(template_));
            copies_ = copies_of(*flow_);
        }
        const auto node = std::ranges::find_if(flow_->nodes, [&](const FlowNode& one) {
            return is_in(one.at, at.op, at.executable) && one.at.bitstream == at.bitstream &&
                   one.at.instruction.word == at.instruction.word;
        });
        if (node == flow_->nodes.end())
            return std::vector<trace::InstructionPlace>{};  // never executed
        const auto index = static_cast<std::size_t>(node - flow_->nodes.begin());
        return fills_through_copies(*flow_, index, copies_);
    }

    /// The tensor of `plain()` of that name in the compiled model, or absent_tensor.
    TensorIndex named(std::string_view name) const {
        const TensorIndex found = names_.find(name);
        return map_.contains(found) ? found : model::absent_tensor;
    }

    void rename(std::string& name) const {
        const TensorIndex from = named(name);
        if (from != model::absent_tensor) name = tensor_of(target_, map_.at(from)).name;
    }

    Status replace_layers(Executable& executable) const {
        for (auto* layers : {&executable.inputs, &executable.outputs}) {
            for (Layer& layer : *layers) REEF_CHECK(replace_layer(layer));
        }
        for (InstructionBitstream& stream : executable.bitstreams) {
            for (FieldOffset& field : stream.field_offsets) rename(field.meta.name);
        }
        if (!executable.dma_hints) return {};
        for (DmaHint& hint : executable.dma_hints->hints) {
            if (auto* dma = std::get_if<DmaDescriptorHint>(&hint.what)) rename(dma->meta.name);
        }
        return {};
    }

    Status replace_layer(Layer& layer) const {
        const TensorIndex from = named(layer.name);
        if (from == model::absent_tensor) return {};
        const Tensor& tensor = tensor_of(target_, map_.at(from));
        layer.name = tensor.name;
        if (!quantization_changes(from) || !layer.numerics) return {};
        if (!tensor.quantization || tensor.quantization->scale.size() != 1) {
            return fail(Cause::unsupported, "an input or output without one scale", layer.name);
        }
        const auto& zero = tensor.quantization->zero_point;
        const bool is_signed = tensor.type == ElementType::int8;
        layer.numerics->dequantization_factor = tensor.quantization->scale.front();
        layer.numerics->zero_point =
            (zero.empty() ? 0 : static_cast<std::int32_t>(zero.front())) + (is_signed ? 128 : 0);
        return {};
    }

    /// Names, quantisation and constants of the tensors that both files have.
    void replace_tensors() {
        for (Tensor& tensor : result_.model.subgraphs.front().tensors) {
            const TensorIndex from = named(tensor.name);
            if (from == model::absent_tensor) continue;
            const Tensor& old = tensor_of(plain(), from);
            const Tensor& fresh = tensor_of(target_, map_.at(from));
            tensor.name = fresh.name;
            const bool renumbered = numbers_->may_differ(from) || !source_is_sure_;
            if (renumbered && tensor.quantization && fresh.quantization) {
                tensor.quantization->scale = fresh.quantization->scale;
                tensor.quantization->zero_point = fresh.quantization->zero_point;
            }
            const Bytes held = result_.model.constant(tensor);
            const Bytes bytes = target_.constant(fresh);
            const Bytes before = source_is_sure_ ? numbers_->constant(old, held) : held;
            if (held.empty() || equal_bytes(bytes, before)) continue;
            tensor.buffer = static_cast<std::uint32_t>(result_.model.buffers.size());
            result_.model.buffers.push_back(SharedBytes::copy_of(bytes));
        }
    }

    CompiledParameters& template_;
    const Model& target_;
    const TensorMap& map_;
    const RetargetOptions& options_;
    TensorNames names_;
    std::unique_ptr<TemplateNumbers> numbers_;
    std::vector<ParameterPart> target_parts_;
    std::vector<Requantisation> from_, to_;  ///< of the template and of the target, in step
    MatchedProgram choices_;
    std::optional<ProgramFlow> flow_;  ///< traced when a border asks for it
    std::vector<bool> copies_;         ///< of the flow
    bool unmodelled_ = false;          ///< an operator on the chip is, and stays as it is
    bool source_is_sure_ = true;
    Retargeted result_;
};

}  // namespace

namespace {

template <class T>
Result<T> named(Result<T>&& result, const std::string& model) {
    return model.empty() ? std::move(result) : in_place(std::move(result), model);
}

Result<CompiledParameters> opened_with_source(const Model& compiled, const Model& source) {
    auto opened = REEF_TRY(CompiledParameters::open(source, compiled));
    REEF_CHECK(check_template(opened));
    REEF_CHECK(check_source(opened));
    return opened;
}

/// What a segment computes of the target: the part that stands for the source's.
Result<Model> segment_of(const Model& target, const Model& source, const model::PartEnds& ends) {
    const TensorMap map = REEF_TRY(match_architectures(source, target));
    model::PartEnds in_target = ends;
    for (auto* list : {&in_target.inputs, &in_target.outputs})
        for (TensorIndex& index : *list) {
            const auto found = map.find(index);
            if (found == map.end())
                return fail(Cause::unsupported, "an input or output that no operator knows",
                            model::place_of_tensor(source.subgraphs.front(), index));
            index = found->second;
        }
    return model::part_between(target, in_target);
}

Result<Retargeted> from_source(CompiledParameters& opened, const Model& target,
                               const RetargetOptions& options) {
    const TensorMap map = REEF_TRY(match_architectures(opened.plain(), target));
    return Retargeting(opened, target, map, options, numbers_of_source({opened, target, map}))
        .run();
}

Result<Retargeted> without_source(const Model& compiled, const Model& target,
                                  const RetargetOptions& options) {
    auto opened = REEF_TRY(CompiledParameters::open(target, compiled, PartSearch::by_bytes));
    REEF_CHECK(check_template(opened));
    const Model computed = opened.plain();
    const TensorMap map = REEF_TRY(match_architectures(computed, computed));
    if (REEF_TRY(is_compiled_from(opened))) {
        Retargeting own(opened, computed, map, options, numbers_of_source({opened, computed, map}));
        own.doubt_source();
        return own.run();
    }
    auto recovered = REEF_TRY(recover_program(opened));
    return Retargeting(recovered.parameters, computed, map, options,
                       numbers_of_program(std::move(recovered.program)))
        .run();
}

}  // namespace

Result<Retargeted> retarget(const Model& compiled, const Model& source, const Model& target,
                            const RetargetOptions& options) {
    auto opened = REEF_TRY(named(opened_with_source(compiled, source), options.source_name));
    if (!opened.ends()) return named(from_source(opened, target, options), options.target_name);
    const Model segment =
        REEF_TRY(named(segment_of(target, source, *opened.ends()), options.target_name));
    return named(from_source(opened, segment, options), options.target_name);
}

Result<Retargeted> retarget(const Model& compiled, const Model& target,
                            const RetargetOptions& options) {
    return named(without_source(compiled, target, options), options.target_name);
}

}  // namespace reef::edgetpu
