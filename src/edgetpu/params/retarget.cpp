#include "reef/edgetpu/retarget.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "edgetpu/params/architecture.h"
#include "reef/edgetpu/compiled_parameters.h"

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

bool same_quantization(const Tensor& a, const Tensor& b) {
    if (a.quantization.has_value() != b.quantization.has_value()) return false;
    return !a.quantization || (a.quantization->scale == b.quantization->scale &&
                               a.quantization->zero_point == b.quantization->zero_point);
}

/// Values that no tensor's quantisation enters: plain copies, and SOFTMAX after its exponential,
/// whose output has TFLite's fixed scale 1/256.
bool independent_of_quantization(const Instruction& instruction) {
    const auto real = [&](std::string_view field) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(instruction.value(field).value()));
    };
    const float scale = real("scale"), max = real("clamp_max"), min = real("clamp_min");
    for (const std::string_view zero : {"par_zero", "in_zero", "out_zero", "initial"}) {
        if (instruction.value(zero).value() != 0) return false;
    }
    constexpr float per_16_bit_step = 1.0F / 65535.0F;
    if (std::isinf(max) && std::isinf(min)) return scale == 1.0F || scale == per_16_bit_step;
    if (min != 0) return false;
    return (scale == per_16_bit_step && max == 32768.0F) || (scale == 1.0F && max == 65535.0F) ||
           (scale == 1.1921416387394856e-07F && max == 255.0F);
}

bool has_requantisation(const Instruction& instruction) {
    return instruction.info != nullptr && instruction.info->find("clamp_max") != nullptr;
}

/// Writes the values that differ; a zero keeps its sign. Gives whether anything was written.
Result<bool> write_values(MutableBytes bytes, const Instruction& instruction,
                          const Requantisation& values) {
    bool changed = false;
    const auto write = [&](std::string_view field, std::int64_t value) -> Status {
        if (instruction.value(field) == value) return {};
        changed = true;
        return set_field(bytes, *instruction.info->find(field), value);
    };
    const auto write_real = [&](std::string_view field, std::optional<float> value) -> Status {
        if (!value) return {};
        const auto held = static_cast<std::uint32_t>(instruction.value(field).value());
        if (std::bit_cast<float>(held) == *value) return {};
        return write(field, std::bit_cast<std::uint32_t>(*value));
    };
    const auto write_number = [&](std::string_view field,
                                  std::optional<std::int32_t> value) -> Status {
        return value ? write(field, *value) : Status{};
    };
    REEF_CHECK(write_real("scale", values.scale));
    REEF_CHECK(write_real("clamp_min", values.clamp_min));
    REEF_CHECK(write_real("clamp_max", values.clamp_max));
    REEF_CHECK(write_number("par_zero", values.weight_zero));
    REEF_CHECK(write_number("in_zero", values.in_zero));
    REEF_CHECK(write_number("out_zero", values.out_zero));
    REEF_CHECK(write_number("initial", values.initial));
    return changed;
}

/// The same values but for the operator they come from.
bool same_values(Requantisation a, const Requantisation& b) {
    a.op = b.op;
    a.role = b.role;
    return a == b;
}

/// One retargeting, step by step; `source_` holds the compiled model and its blobs.
class Retargeting {
  public:
    Retargeting(CompiledParameters& source, const Model& target, const TensorMap& map,
                const RetargetOptions& options)
        : source_(source), target_(target), map_(map), options_(options) {
        result_.model = source.compiled();
    }

    Result<Retargeted> run() {
        REEF_CHECK(replace_parameters());
        REEF_CHECK(check_unmodelled());
        find_roles();
        for (std::size_t i = 0; i < source_.operators().size(); ++i) {
            REEF_CHECK(in_place(replace_in(i), source_.operators()[i].place));
        }
        replace_tensors();
        return std::move(result_);
    }

  private:
    const Model& plain() const { return source_.plain(); }
    bool quantization_changes(TensorIndex index) const {
        return index != model::absent_tensor &&
               !same_quantization(tensor_of(plain(), index), tensor_of(target_, map_.at(index)));
    }

    /// The part with the target's tensors and the template's layout.
    ParameterPart in_target(ParameterPart part) const {
        for (TensorIndex* index : {&part.input, &part.weights, &part.bias, &part.output}) {
            if (*index != model::absent_tensor) *index = map_.at(*index);
        }
        return part;
    }

    Status replace_parameters() {
        const Placement& placement = source_.placement();
        for (const ParameterPart& part : source_.parts()) target_parts_.push_back(in_target(part));
        for (const PlacedPart& placed : placement.placed) {
            if (placed.differing == 0) continue;
            return fail(Cause::bad_argument,
                        fmt::format("{} bytes of its parameters are not those of the source",
                                    placed.differing),
                        source_.parts()[placed.part].name,
                        "give the plain model that it was compiled from");
        }
        for (const PlacedPart& placed : placement.placed) {
            const MutableBytes bytes = source_.bytes_of(placed);
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
    Status check_unmodelled() const {
        const auto& graph = plain().subgraphs.front();
        bool any = result_.changed_parameter_bytes > 0;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (!source_.on_chip()[i]) continue;
            const Operator& op = graph.operators[i];
            const auto changes = [this](TensorIndex index) { return quantization_changes(index); };
            if (std::ranges::none_of(op.inputs, changes) &&
                std::ranges::none_of(op.outputs, changes)) {
                continue;
            }
            any = true;
            REEF_CHECK(in_place(check_modelled(op), model::place_of(graph, i)));
        }
        const Placement& placement = source_.placement();
        if (!any || (placement.unexplained.empty() && placement.missing.empty())) return {};
        std::size_t bytes = 0;
        for (const BlobRange& range : placement.unexplained) bytes += range.size_bytes;
        return fail(Cause::unsupported,
                    fmt::format("{} bytes of the parameters are not understood, so that they "
                                "cannot be made for other weights",
                                bytes),
                    {}, "reef weights verify lists them");
    }

    Status check_modelled(const Operator& op) const {
        switch (op.code.builtin) {
            case Op::conv_2d:
            case Op::depthwise_conv_2d:
            case Op::average_pool_2d:
                return check_border(op);
            case Op::fully_connected:
            case Op::mul:
            case Op::reshape:
            case Op::concatenation:
            case Op::softmax:
                return {};
            case Op::quantize:
                return check_renaming(op);
            default:
                break;
        }
        return fail(Cause::unsupported,
                    "its quantisation differs, and how the program holds it is not known exactly");
    }

    /// Borders are filled with the input's zero point by instructions that do not name it.
    Status check_border(const Operator& op) const {
        const bool padded = std::visit(
            [](const auto& options) {
                if constexpr (requires { options.padding; }) {
                    return options.padding == model::Padding::same;
                }
                return false;
            },
            op.options);
        const auto zero = [](const Tensor& tensor) {
            return tensor.quantization ? tensor.quantization->zero_point
                                       : std::vector<std::int64_t>{};
        };
        const TensorIndex in = op.inputs.empty() ? model::absent_tensor : op.inputs[0];
        if (!padded || in == model::absent_tensor || window_is_one(op) ||
            zero(tensor_of(plain(), in)) == zero(tensor_of(target_, map_.at(in)))) {
            return {};
        }
        return fail(Cause::unsupported,
                    "its input's zero point differs, and the program fills the border with it");
    }

    bool window_is_one(const Operator& op) const {
        if (op.code.builtin == Op::average_pool_2d || op.inputs.size() < 2) return false;
        const auto& shape = tensor_of(plain(), op.inputs[1]).shape;
        return shape.size() == 4 && shape[1] == 1 && shape[2] == 1;
    }

    /// QUANTIZE between uint8 and int8 of one scale is no instruction.
    Status check_renaming(const Operator& op) const {
        if (op.inputs.empty() || op.outputs.empty() || op.inputs[0] == model::absent_tensor) {
            return fail(Cause::bad_input, "without input or output");
        }
        for (const Model* side : {&plain(), &target_}) {
            const auto at = [&](TensorIndex index) -> const Tensor& {
                return tensor_of(*side, side == &target_ ? map_.at(index) : index);
            };
            const Tensor& in = at(op.inputs[0]);
            const Tensor& out = at(op.outputs[0]);
            const auto zero = [](const Tensor& tensor) {
                const auto& points = tensor.quantization->zero_point;
                return (points.empty() ? 0 : points.front()) +
                       (tensor.type == ElementType::int8 ? 128 : 0);
            };
            if (in.quantization && out.quantization && in.quantization->quantized() &&
                in.quantization->scale == out.quantization->scale && zero(in) == zero(out)) {
                continue;
            }
            return fail(Cause::unsupported, "its quantisation differs, and it rescales");
        }
        return {};
    }

    void find_roles() {
        from_ = requantisations(plain(), source_.on_chip(), source_.parts());
        to_ = requantisations(target_, source_.on_chip(), target_parts_);
        changing_ = from_ != to_;
    }

    Status replace_in(std::size_t index) {
        Package package = source_.operators()[index].package;
        const Package before = package;
        for (const CompiledParameters::Blob& blob : source_.blobs()) {
            Executable& executable = package.executables[blob.executable];
            if (blob.op == index && !std::ranges::equal(executable.parameters.view(), blob.bytes)) {
                executable.parameters = SharedBytes::copy_of(blob.bytes);
            }
        }
        for (std::size_t i = 0; i < package.executables.size(); ++i) {
            const std::string place = fmt::format("executable {}", i);
            REEF_CHECK(in_place(replace_instructions(package.executables[i]), place));
            REEF_CHECK(in_place(replace_layers(package.executables[i]), place));
        }
        if (package == before) return {};
        const std::uint64_t token = options_.token.value_or(parameter_token(package));
        for (Executable& executable : package.executables) {
            executable.parameter_caching_token = token;
        }
        const CompiledOperator& place = source_.operators()[index];
        return replace_package(result_.model.subgraphs[place.subgraph].operators[place.index],
                               package);
    }

    Status replace_instructions(Executable& executable) {
        if (!changing_ || executable.type == ExecutableType::parameter_caching) return {};
        for (InstructionBitstream& stream : executable.bitstreams) {
            const Bytes old = stream.instructions.view();
            std::vector<std::byte> bytes(old.begin(), old.end());
            const auto instructions = REEF_TRY(decode(old));
            const auto choices = REEF_TRY(choose_roles(instructions));
            bool changed = false;
            for (const auto& [at, role] : choices) {
                const Instruction& instruction = instructions[at];
                const MutableBytes place = MutableBytes(bytes).subspan(
                    instruction.word * word_bytes, instruction.bytes.size());
                if (!REEF_TRY(write_values(place, instruction, to_[role]))) continue;
                ++result_.changed_instructions;
                changed = true;
            }
            if (changed) stream.instructions = SharedBytes::copy_of(bytes);
        }
        return {};
    }

    using Choice = std::pair<std::size_t, std::size_t>;  ///< instruction, role

    /// For each tensor instruction with values of an operator: which one's.
    Result<std::vector<Choice>> choose_roles(const std::vector<Instruction>& instructions) const {
        std::vector<Choice> choices;
        std::map<std::vector<std::size_t>, std::vector<std::size_t>> unclear;
        for (std::size_t i = 0; i < instructions.size(); ++i) {
            if (!has_requantisation(instructions[i])) continue;
            auto roles = roles_of(instructions[i]);
            if (roles.empty()) {
                if (independent_of_quantization(instructions[i])) continue;
                return fail(Cause::unsupported,
                            "its values belong to no operator of the source, so that they cannot "
                            "be made for another",
                            fmt::format("{} at word {:#x}", instructions[i].info->name,
                                        instructions[i].word));
            }
            if (roles.size() == 1) {
                choices.emplace_back(i, roles.front());
            } else {
                unclear[roles].push_back(i);
            }
        }
        // Operators that the source quantises alike, in their order; the program keeps it.
        for (const auto& [roles, places] : unclear) {
            if (places.size() % roles.size() != 0) {
                return fail(Cause::unsupported,
                            fmt::format("operators {} and {} are quantised alike in the source and "
                                        "not in the target, and their instructions cannot be "
                                        "told apart",
                                        from_[roles[0]].op, from_[roles[1]].op));
            }
            const std::size_t each = places.size() / roles.size();
            for (std::size_t i = 0; i < places.size(); ++i) {
                choices.emplace_back(places[i], roles[i / each]);
            }
        }
        return choices;
    }

    /// Roles that the instruction may have; those that say the same for the target count once.
    std::vector<std::size_t> roles_of(const Instruction& instruction) const {
        std::vector<std::size_t> roles;
        for (std::size_t role = 0; role < from_.size(); ++role) {
            if (!holds(instruction, from_[role])) continue;
            const bool known = std::ranges::any_of(
                roles, [&](std::size_t other) { return same_values(to_[other], to_[role]); });
            if (!known) roles.push_back(role);
        }
        return roles;
    }

    /// The source's tensor of that name, or absent_tensor.
    TensorIndex named(std::string_view name) const {
        const auto& tensors = plain().subgraphs.front().tensors;
        for (const auto& [from, to] : map_) {
            if (!name.empty() && tensors[static_cast<std::size_t>(from)].name == name) return from;
        }
        return model::absent_tensor;
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
            if (!same_quantization(old, fresh) && tensor.quantization && fresh.quantization) {
                tensor.quantization->scale = fresh.quantization->scale;
                tensor.quantization->zero_point = fresh.quantization->zero_point;
            }
            const Bytes bytes = target_.constant(fresh);
            if (result_.model.constant(tensor).empty() ||
                std::ranges::equal(bytes, plain().constant(old))) {
                continue;
            }
            tensor.buffer = static_cast<std::uint32_t>(result_.model.buffers.size());
            result_.model.buffers.push_back(SharedBytes::copy_of(bytes));
        }
    }

    CompiledParameters& source_;
    const Model& target_;
    const TensorMap& map_;
    const RetargetOptions& options_;
    std::vector<ParameterPart> target_parts_;
    std::vector<Requantisation> from_, to_;  ///< of the source and of the target, in step
    bool changing_ = false;
    Retargeted result_;
};

}  // namespace

Result<Retargeted> retarget(const Model& compiled, const Model& source, const Model& target,
                            const RetargetOptions& options) {
    auto opened = REEF_TRY(CompiledParameters::open(source, compiled));
    const TensorMap map = REEF_TRY(match_architectures(source, target));
    return Retargeting(opened, target, map, options).run();
}

}  // namespace reef::edgetpu
