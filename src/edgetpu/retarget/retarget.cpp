#include "reef/edgetpu/retarget.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "edgetpu/params/plain_checks.h"
#include "edgetpu/retarget/architecture.h"
#include "edgetpu/retarget/operator_checks.h"
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

    Result<Retargeted> run() {
        REEF_CHECK(replace_parameters());
        find_roles();
        const OperatorChecks checks({template_, target_, map_}, roles(), *numbers_);
        REEF_CHECK(check_unmodelled(checks));
        choices_ = REEF_TRY(numbers_->match(roles(), unmodelled_));
        REEF_CHECK(checks.check_rescaling(choices_));
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
    Status check_unmodelled(const OperatorChecks& checks) {
        const auto& graph = plain().subgraphs.front();
        bool any = result_.changed_parameter_bytes > 0;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (!template_.on_chip()[i]) continue;
            const Operator& op = graph.operators[i];
            REEF_CHECK(in_place(checks.check_intermediates(i), model::place_of(graph, i)));
            unmodelled_ = unmodelled_ || !checks.is_modelled(i);
            const auto changes = [this](TensorIndex index) { return quantization_changes(index); };
            if (std::ranges::none_of(op.inputs, changes) &&
                std::ranges::none_of(op.outputs, changes)) {
                continue;
            }
            any = true;
            REEF_CHECK(in_place(checks.check(i), model::place_of(graph, i)));
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
            const bool renumbered = numbers_->may_differ(from);
            if (renumbered && tensor.quantization && fresh.quantization) {
                tensor.quantization->scale = fresh.quantization->scale;
                tensor.quantization->zero_point = fresh.quantization->zero_point;
            }
            const Bytes held = result_.model.constant(tensor);
            const Bytes bytes = target_.constant(fresh);
            const Bytes before = numbers_->constant(old, held);
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
    Retargeted result_;
};

}  // namespace

namespace {

template <class T>
Result<T> named(Result<T>&& result, const std::string& model) {
    return model.empty() ? std::move(result) : in_place(std::move(result), model);
}

Status check_numbers(const Model& plain) {
    REEF_CHECK(check_dense(plain));
    return check_scales(plain);
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
    REEF_CHECK(check_readable(opened));
    const ProgramFlow flow = REEF_TRY(program_flow(opened));
    if (auto program = REEF_TRY(program_of_plain(opened, flow)))
        return Retargeting(opened, computed, map, options,
                           numbers_of_plain(opened, std::move(*program)))
            .run();
    auto recovered = REEF_TRY(recover_program(opened, flow));
    return Retargeting(recovered.parameters, computed, map, options,
                       numbers_of_program(std::move(recovered.program)))
        .run();
}

}  // namespace

Result<Retargeted> retarget(const Model& compiled, const Model& source, const Model& target,
                            const RetargetOptions& options) {
    REEF_CHECK(named(check_numbers(source), options.source_name));
    REEF_CHECK(named(check_numbers(target), options.target_name));
    auto opened = REEF_TRY(named(opened_with_source(compiled, source), options.source_name));
    if (!opened.ends()) return named(from_source(opened, target, options), options.target_name);
    const Model segment =
        REEF_TRY(named(segment_of(target, source, *opened.ends()), options.target_name));
    return named(from_source(opened, segment, options), options.target_name);
}

Result<Retargeted> retarget(const Model& compiled, const Model& target,
                            const RetargetOptions& options) {
    REEF_CHECK(named(check_numbers(target), options.target_name));
    return named(without_source(compiled, target, options), options.target_name);
}

}  // namespace reef::edgetpu
