#include "reef/edgetpu/compiled_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <span>

#include "edgetpu/package/own_compiler.h"
#include "edgetpu/params/plain_checks.h"
#include "edgetpu/params/stored_form.h"
#include "edgetpu/params/transpose_weights.h"
#include "edgetpu/program/codec.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Tensor;
using model::TensorIndex;

const Tensor& tensor_of(const Model& plain, TensorIndex index) {
    return plain.subgraphs.front().tensors[static_cast<std::size_t>(index)];
}

std::string name_of_tensor(const Model& plain, TensorIndex index) {
    const std::string& name = tensor_of(plain, index).name;
    return name.empty() ? fmt::format("tensor {}", index) : name;
}

constexpr std::string_view multiplier_suffix = ":multiplier";

std::string multiplier_name(const Model& plain, TensorIndex weights) {
    return name_of_tensor(plain, weights).append(multiplier_suffix);
}

Array array_like(const Tensor& tensor) {
    Array array{tensor.type, {tensor.shape.begin(), tensor.shape.end()}, {}};
    array.data.resize(static_cast<std::size_t>(tensor.byte_count().value_or(0)));
    return array;
}

WeightType weight_type(const Tensor& tensor) {
    return tensor.type == ElementType::uint8 ? WeightType::uint8 : WeightType::int8;
}

std::int32_t zero_point(const Tensor& tensor) {
    const auto& points = tensor.quantization->zero_point;
    return points.empty() ? 0 : static_cast<std::int32_t>(points.front());
}

/// The numbers of a part's layers, one layer behind the other, on their way from and to arrays.
struct LayerNumbers {
    LayerNumbers(const Model& plain, const ParameterPart& part)
        // Taps that the part does not store are real zeros.
        : weights(part.weight_count(),
                  static_cast<std::byte>(zero_point(tensor_of(plain, part.weights)))),
          biases(part.layout.vectors.biases ? part.out_channels() : 0),
          multipliers(part.layout.vectors.multipliers ? part.out_channels() : 0),
          zero_points(part.layout.vectors.zero_points ? part.out_channels() : 0) {}

    Status read(const Model& plain, const ParameterPart& part, Bytes blob) {
        REEF_CHECK(check_tensors(plain, part));
        const WeightType type = weight_type(tensor_of(plain, part.weights));
        return decode_stored(part, blob, {type, weights, biases, multipliers, zero_points});
    }

    /// Each layer's tensors are of the types that a layer has, and have as many elements as its
    /// share here.
    Status check_tensors(const Model& plain, const ParameterPart& part) const {
        const auto layers = part.layers();
        const auto check = [&](TensorIndex index, std::size_t all, const char* what,
                               std::initializer_list<ElementType> types) -> Status {
            const Tensor& tensor = tensor_of(plain, index);
            if (std::ranges::find(types, tensor.type) == types.end())
                return fail(Cause::bad_input,
                            fmt::format("{} of type {}", what, reef::name_of(tensor.type)),
                            tensor.name, "take the plain model that was compiled");
            if (tensor.element_count() == static_cast<std::int64_t>(all / layers.size())) return {};
            return fail(Cause::bad_input,
                        fmt::format("{} of {} elements, where the compiled program has {}", what,
                                    tensor.element_count(), all / layers.size()),
                        tensor.name, "take the plain model that was compiled");
        };
        for (const LayerTensors& layer : layers) {
            REEF_CHECK(check(layer.weights, weights.size(), "weights",
                             {ElementType::uint8, ElementType::int8}));
            if (layer.bias != model::absent_tensor && !biases.empty())
                REEF_CHECK(check(layer.bias, biases.size(), "a bias", {ElementType::int32}));
        }
        return {};
    }

    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
    std::vector<float> multipliers;
    std::vector<std::int32_t> zero_points;
};

/// Of one of so many layers.
template <typename T>
std::span<T> share(std::vector<T>& all, std::size_t layer, std::size_t layers) {
    const std::size_t size = all.size() / layers;
    return std::span(all).subspan(layer * size, size);
}

template <typename T>
Array array_of(ElementType type, const std::vector<std::int64_t>& shape, std::span<T> values) {
    const auto bytes = std::as_bytes(values);
    return {type, shape, {bytes.begin(), bytes.end()}};
}

template <typename T>
std::vector<T> values_of(const Array& array) {
    std::vector<T> values(array.data.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
}

using Given = std::map<std::string, const Array*, std::less<>>;

/// One part's new bytes out of the arrays that are given and its old bytes.
class PartReplacement {
  public:
    PartReplacement(const Model& plain, const ParameterPart& part, const Given& given)
        : plain_(plain), part_(part), given_(given) {}

    Result<std::vector<std::byte>> bytes(Bytes old) const {
        LayerNumbers numbers(plain_, part_);
        REEF_CHECK(numbers.read(plain_, part_, old));
        const auto layers = part_.layers();
        for (std::size_t i = 0; i < layers.size(); ++i) {
            REEF_CHECK(take_weights(layers[i], share(numbers.weights, i, layers.size())));
            REEF_CHECK(take_biases(layers[i], share(numbers.biases, i, layers.size())));
            REEF_CHECK(take_multipliers(layers[i], share(numbers.multipliers, i, layers.size())));
        }
        const Tensor& tensor = tensor_of(plain_, part_.weights);
        std::vector<std::byte> blob(old.size());
        REEF_CHECK(
            encode_stored(part_,
                          LayerValues{weight_type(tensor), numbers.weights, zero_point(tensor),
                                      numbers.biases, numbers.multipliers},
                          blob));
        return blob;
    }

  private:
    const Array* find(const std::string& name) const {
        const auto found = given_.find(name);
        return found == given_.end() ? nullptr : found->second;
    }

    static Status check(const Array& array, const Tensor& tensor, ElementType type) {
        const std::size_t bytes = static_cast<std::size_t>(tensor.element_count()) * *size_of(type);
        const bool same = array.type == type && std::ranges::equal(array.shape, tensor.shape);
        if (same && array.data.size() == bytes) return {};
        const std::string problem =
            same ? fmt::format("an array of {} bytes, not {}", array.data.size(), bytes)
                 : fmt::format("an array {} {}, not {} {}", reef::name_of(array.type),
                               fmt::join(array.shape, "x"), reef::name_of(type),
                               model::shape_text(tensor.shape));
        return fail(Cause::bad_argument, problem, tensor.name,
                    "reef weights get writes arrays of the right form");
    }

    Status take_weights(const LayerTensors& layer, std::span<std::byte> to) const {
        const Array* given = find(name_of_tensor(plain_, layer.weights));
        if (given == nullptr) return {};
        const Tensor& tensor = tensor_of(plain_, layer.weights);
        if (given->type == ElementType::float32) return take_real_weights(*given, tensor, to);
        REEF_CHECK(check(*given, tensor, tensor.type));
        std::ranges::copy(given->data, to.begin());
        return {};
    }

    /// Rounded to the model's scales.
    Status take_real_weights(const Array& given, const Tensor& tensor,
                             std::span<std::byte> to) const {
        REEF_CHECK(check(given, tensor, ElementType::float32));
        if (tensor.type != ElementType::int8 || zero_point(tensor) != 0) {
            return fail(Cause::bad_argument, "real weights for a layer that is not int8",
                        tensor.name, "give them as uint8");
        }
        const auto& scales = tensor.quantization->scale;
        for (std::size_t i = 0; i < scales.size(); ++i) {
            if (std::isfinite(scales[i]) && scales[i] > 0) continue;
            return fail(
                Cause::bad_argument,
                fmt::format("scale {} of channel {} is not a positive number", scales[i], i),
                tensor.name);
        }
        const LayerKind kind = part_.layout.shape.kind;
        const bool channels_last = part_.layout.shape.is_diagonal() ||
                                   kind == LayerKind::widening || part_.form.channels_last;
        const std::size_t per_channel = to.size() / scales.size();
        const auto values = values_of<float>(given);
        for (std::size_t i = 0; i < to.size(); ++i) {
            const float scale = scales[channels_last ? i % scales.size() : i / per_channel];
            REEF_CHECK(in_place(check_real_weight(values[i], scale, i), tensor.name));
            to[i] = static_cast<std::byte>(quantized_weight(values[i], scale));
        }
        return {};
    }

    static Status check_real_weight(float value, float scale, std::size_t index) {
        if (!std::isfinite(value))
            return fail(Cause::bad_argument, fmt::format("value {} is no number", value),
                        fmt::format("element {}", index));
        if (!is_limited(value, scale)) return {};
        return fail(Cause::bad_argument,
                    fmt::format("value {} is beyond {} steps of its scale {}, the most that int8 "
                                "holds",
                                value, largest_weight, scale),
                    fmt::format("element {}", index),
                    "limit it, or retarget to a plain model with a larger scale");
    }

    /// `to` is empty where the part has no biases.
    Status take_biases(const LayerTensors& layer, std::span<std::int32_t> to) const {
        if (layer.bias == model::absent_tensor) return {};
        const Array* given = find(name_of_tensor(plain_, layer.bias));
        if (given == nullptr) return {};
        const Tensor& tensor = tensor_of(plain_, layer.bias);
        REEF_CHECK(check(*given, tensor, ElementType::int32));
        const auto values = values_of<std::int32_t>(*given);
        if (!to.empty()) {
            std::ranges::copy(values, to.begin());
            return {};
        }
        if (std::ranges::all_of(values, [](std::int32_t value) { return value == 0; })) return {};
        return fail(Cause::unsupported,
                    "a bias, for which the compiled program has no place: it was compiled "
                    "without one",
                    tensor.name);
    }

    Status take_multipliers(const LayerTensors& layer, std::span<float> to) const {
        const std::string name = multiplier_name(plain_, layer.weights);
        const Array* given = find(name);
        if (given == nullptr) return {};
        if (to.empty()) {
            return fail(Cause::unsupported, "multipliers of a layer that stores none", name);
        }
        if (given->type != ElementType::float32 || given->data.size() != to.size() * 4) {
            return fail(Cause::bad_argument, fmt::format("not {} float32 values", to.size()), name);
        }
        std::ranges::copy(values_of<float>(*given), to.begin());
        return {};
    }

    const Model& plain_;
    const ParameterPart& part_;
    const Given& given_;
};

/// Arrays by name, put together part by part.
class ArrayCollector {
  public:
    explicit ArrayCollector(const Model& plain) : plain_(plain) {}

    /// An array that another operator has given is left as it is; one of the same operator, whose
    /// weights are in several parts, is completed.
    Status add(const ParameterPart& part, Bytes blob) {
        LayerNumbers numbers(plain_, part);
        const auto layers = part.layers();
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const auto known = from_.find(layers[i].weights);
            if (known == from_.end() || known->second != part.op) continue;
            std::ranges::copy(array(name_of_tensor(plain_, layers[i].weights)).data,
                              share(numbers.weights, i, layers.size()).begin());
        }
        REEF_CHECK(numbers.read(plain_, part, blob));
        for (std::size_t i = 0; i < layers.size(); ++i) take(part, i, numbers);
        return {};
    }

    [[nodiscard]] NamedArrays arrays() && { return std::move(arrays_); }

  private:
    Array& array(const std::string& name) {
        const auto found = std::ranges::find(arrays_, name, &NamedArrays::value_type::first);
        if (found != arrays_.end()) return found->second;
        return arrays_.emplace_back(name, Array{}).second;
    }

    void take(const ParameterPart& part, std::size_t index, LayerNumbers& numbers) {
        const auto layers = part.layers();
        const LayerTensors& layer = layers[index];
        if (from_.try_emplace(layer.weights, part.op).first->second != part.op) return;
        Array weights = array_like(tensor_of(plain_, layer.weights));
        std::ranges::copy(share(numbers.weights, index, layers.size()), weights.data.begin());
        array(name_of_tensor(plain_, layer.weights)) = std::move(weights);
        if (layer.bias != model::absent_tensor &&
            from_.try_emplace(layer.bias, part.op).first->second == part.op) {
            Array bias = array_like(tensor_of(plain_, layer.bias));
            const auto values = share(numbers.biases, index, layers.size());
            if (!values.empty()) bias = array_of(bias.type, bias.shape, values);
            array(name_of_tensor(plain_, layer.bias)) = std::move(bias);
        }
        const auto multipliers = share(numbers.multipliers, index, layers.size());
        if (multipliers.empty()) return;
        array(multiplier_name(plain_, layer.weights)) = array_of(
            ElementType::float32, {static_cast<std::int64_t>(multipliers.size())}, multipliers);
    }

    const Model& plain_;
    std::map<TensorIndex, std::size_t> from_;  ///< operators that gave the tensors
    NamedArrays arrays_;
};

/// The line of 1.0 behind a softmax table as a table of its own, of no channels.
ParameterPart unit_line_of(ParameterPart table) {
    table.count = 0;
    table.size_bytes = softmax_table_size(0, true);
    return table;
}

/// Where layers are divided between the blobs, that line may be cached and the table streamed.
/// Lines that are nowhere are no parts.
Status add_lines(const Model& plain, std::vector<ParameterPart>& parts,
                 const std::vector<ParameterPart>& lines, const std::vector<Bytes>& blobs) {
    if (lines.empty()) return {};
    const std::size_t before = parts.size();
    std::vector<ParameterPart> all = parts;
    all.insert(all.end(), lines.begin(), lines.end());
    for (const auto& one : REEF_TRY(place_parts(plain, all, blobs, PartSearch::by_bytes)).placed)
        if (one.part >= before) parts.push_back(all[one.part]);
    return {};
}

/// The forms that each part may have, the likeliest first.
using PartForms = std::vector<std::vector<ParameterPart>>;

/// Of parts that are not in the blobs, the first other form that is there takes their place.
Status take_forms_that_are_there(const Model& plain, std::vector<ParameterPart>& parts,
                                 const PartForms& forms, const std::vector<Bytes>& blobs) {
    std::size_t most = 1;
    for (const auto& of_part : forms) most = std::max(most, of_part.size());
    std::vector<ParameterPart> lines;
    for (std::size_t form = 1; form < most; ++form) {
        const auto missing =
            REEF_TRY(place_parts(plain, parts, blobs, PartSearch::by_bytes)).missing;
        std::vector<ParameterPart> others = parts;
        for (const std::size_t i : missing)
            if (form < forms[i].size()) others[i] = forms[i][form];
        const auto placed =
            REEF_TRY(place_parts(plain, others, blobs, PartSearch::by_bytes)).placed;
        for (const PlacedPart& one : placed) {
            if (parts[one.part].unit_line && !others[one.part].unit_line)
                lines.push_back(unit_line_of(parts[one.part]));
            parts[one.part] = others[one.part];
        }
    }
    return add_lines(plain, parts, lines, blobs);
}

/// Whether a program is of Reef's compiler.
bool made_by_reef(const std::vector<CompiledOperator>& operators) {
    return std::ranges::any_of(operators, [](const CompiledOperator& op) {
        return op.package.compiler_version == own_compiler_version;
    });
}

Result<PartForms> forms_of(const Model& plain, const std::vector<bool>& on_chip, bool own) {
    if (own) return plan_own_parameters(plain, on_chip);
    PartForms forms;
    for (ParameterPart& part : REEF_TRY(plan_parameters(plain, on_chip))) {
        auto other = REEF_TRY(other_form(part));
        auto& both = forms.emplace_back();
        both.push_back(std::move(part));
        if (other) both.push_back(std::move(*other));
    }
    return forms;
}

/// Reef's compiler does without zeros and ones where channels begin at words, or operators are put
/// together: those that are not there are no parts.
void leave_out_own_constants(std::vector<ParameterPart>& parts, PartForms& forms,
                             Placement& placement) {
    const auto may_lack = [&](std::size_t part) {
        return parts[part].kind == PartKind::selection || parts[part].kind == PartKind::ones;
    };
    std::vector<std::size_t> left_out;
    std::ranges::copy_if(placement.missing, std::back_inserter(left_out), may_lack);
    std::erase_if(placement.missing, may_lack);
    const auto fewer = [&](std::size_t& part) {
        part -=
            static_cast<std::size_t>(std::ranges::lower_bound(left_out, part) - left_out.begin());
    };
    for (PlacedPart& placed : placement.placed) fewer(placed.part);
    std::ranges::for_each(placement.missing, fewer);
    for (std::size_t i = left_out.size(); i-- > 0;) {
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(left_out[i]));
        forms.erase(forms.begin() + static_cast<std::ptrdiff_t>(left_out[i]));
    }
}

/// A program of Reef's that keeps no parameters on the chip has a row of zeros there, by which the
/// memory is its own.
bool is_anchor(const Executable& executable) {
    const Bytes bytes = executable.parameters.view();
    return executable.type == ExecutableType::parameter_caching &&
           bytes.size() == spec::row_bytes &&
           std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

/// Whether a program computes exponentials on the scalar core: its softmax needs no table.
Result<bool> exponentials_on_scalar_core(const std::vector<CompiledOperator>& operators) {
    for (const CompiledOperator& op : operators)
        for (const Executable& executable : op.package.executables)
            for (const InstructionBitstream& stream : executable.bitstreams)
                for (const auto& one : REEF_TRY(
                         in_place(program::decode_stream(stream.instructions.view()), op.place))) {
                    const auto* bundle = std::get_if<program::Bundle>(&one.operation);
                    if (bundle != nullptr && bundle->function.op == spec::FunctionOp::exp2_)
                        return true;
                }
    return false;
}

/// Tables of a softmax that the scalar core computes are not there. Those that are, are used.
Status leave_out_tables(const std::vector<CompiledOperator>& operators,
                        std::vector<ParameterPart>& parts, Placement& placement) {
    const auto is_table = [&](std::size_t part) {
        return parts[part].kind == PartKind::softmax_table;
    };
    if (std::ranges::none_of(placement.missing, is_table)) return {};
    if (!REEF_TRY(exponentials_on_scalar_core(operators))) return {};
    std::erase_if(placement.missing, is_table);
    return {};
}

}  // namespace

Result<CompiledParameters> CompiledParameters::open(Model plain, Model compiled,
                                                    PartSearch search) {
    CompiledParameters opened;
    const auto in_plain = REEF_TRY(packages_of(plain));
    if (!in_plain.empty()) {
        return fail(Cause::bad_input, "the model to compare with is compiled", {},
                    "give the plain model that the compiler read");
    }
    REEF_CHECK(check_dense(plain));
    opened.ends_ = model::ends_in(plain, compiled);
    if (opened.ends_) {
        opened.first_operator_ = REEF_TRY(model::operators_between(plain, *opened.ends_)).front();
        plain = REEF_TRY(model::part_between(plain, *opened.ends_));
    }
    opened.operators_ = REEF_TRY(packages_of(compiled));
    opened.on_chip_ = REEF_TRY(operators_on_chip(plain, compiled));
    opened.own_ = made_by_reef(opened.operators_);
    opened.forms_ = REEF_TRY(forms_of(plain, opened.on_chip_, opened.own_));
    for (const auto& of_part : opened.forms_) opened.parts_.push_back(of_part.front());
    std::vector<Bytes> views;
    for (std::size_t op = 0; op < opened.operators_.size(); ++op) {
        const CompiledOperator& one = opened.operators_[op];
        for (std::size_t i = 0; i < one.package.executables.size(); ++i) {
            const Executable& executable = one.package.executables[i];
            const Bytes bytes = executable.parameters.view();
            if (bytes.empty()) continue;
            views.push_back(bytes);
            opened.blobs_.push_back({op,
                                     i,
                                     fmt::format("{}: {}", one.place, to_string(executable.type)),
                                     {bytes.begin(), bytes.end()}});
        }
    }
    REEF_CHECK(take_forms_that_are_there(plain, opened.parts_, opened.forms_, views));
    opened.placement_ = REEF_TRY(place_parts(plain, opened.parts_, views, search));
    if (opened.own_) {
        leave_out_own_constants(opened.parts_, opened.forms_, opened.placement_);
        for (std::size_t i = 0; i < opened.blobs_.size(); ++i) {
            const BlobRange all{i, 0, opened.blobs_[i].bytes.size()};
            if (opened.is_anchor_of_own(i) && std::erase(opened.placement_.unexplained, all) > 0)
                opened.placement_.alignment.push_back(all);
        }
    }
    REEF_CHECK(leave_out_tables(opened.operators_, opened.parts_, opened.placement_));
    opened.plain_ = std::move(plain);
    opened.compiled_ = std::move(compiled);
    return opened;
}

bool CompiledParameters::is_anchor_of_own(std::size_t blob) const {
    const Blob& one = blobs_[blob];
    return own_ && is_anchor(operators_[one.op].package.executables[one.executable]);
}

Result<CompiledParameters> CompiledParameters::placed_as(std::vector<ParameterPart> parts,
                                                         const std::vector<PartHint>& hints) const {
    std::vector<Bytes> views;
    views.reserve(blobs_.size());
    for (std::size_t i = 0; i < blobs_.size(); ++i)
        views.push_back(is_anchor_of_own(i) ? Bytes{} : Bytes(blobs_[i].bytes));
    CompiledParameters placed = *this;
    placed.placement_ = REEF_TRY(place_by_hints(plain_, parts, hints, views));
    placed.parts_ = std::move(parts);
    return placed;
}

MutableBytes CompiledParameters::bytes_of(const PlacedPart& placed) {
    return MutableBytes(blobs_[placed.range.blob].bytes)
        .subspan(placed.range.offset, placed.range.size_bytes);
}
Bytes CompiledParameters::bytes_of(const PlacedPart& placed) const {
    return Bytes(blobs_[placed.range.blob].bytes)
        .subspan(placed.range.offset, placed.range.size_bytes);
}

Result<NamedArrays> CompiledParameters::get() const {
    for (const std::size_t missing : placement_.missing) {
        if (parts_[missing].kind != PartKind::layer) continue;
        return fail(Cause::unsupported, "its weights are not where the plain model has them",
                    parts_[missing].name,
                    "is this the plain model of the compiled one? reef weights verify lists what "
                    "was found");
    }
    ArrayCollector collector(plain_);
    for (const PlacedPart& placed : placement_.placed) {
        const ParameterPart& part = parts_[placed.part];
        if (part.kind != PartKind::layer) continue;
        REEF_CHECK(in_place(collector.add(part, bytes_of(placed)), part.name));
    }
    return std::move(collector).arrays();
}

Status CompiledParameters::set(const NamedArrays& arrays) {
    const NamedArrays known = REEF_TRY(get());
    Given given;
    for (const auto& [name, array] : arrays) {
        const bool found =
            std::ranges::any_of(known, [&](const auto& one) { return one.first == name; });
        if (!found) {
            return fail(Cause::not_found, "no layer on the chip has an array of this name", name,
                        "reef weights get lists the names");
        }
        given[name] = &array;
    }
    std::vector<std::vector<std::byte>> replaced;
    for (const PlacedPart& placed : placement_.placed) {
        const ParameterPart& part = parts_[placed.part];
        const Bytes old = bytes_of(placed);
        if (part.kind != PartKind::layer) {
            replaced.emplace_back(old.begin(), old.end());
            continue;
        }
        replaced.push_back(
            REEF_TRY(in_place(PartReplacement(plain_, part, given).bytes(old), part.name)));
    }
    for (std::size_t i = 0; i < replaced.size(); ++i) {
        std::ranges::copy(replaced[i], bytes_of(placement_.placed[i]).begin());
    }
    return {};
}

bool CompiledParameters::is_of_other_segment(std::string_view name) const {
    if (!ends_) return false;
    // A part's tensors are all of the whole network's.
    const auto& graph = plain_.subgraphs.front();
    std::vector<bool> read(graph.tensors.size(), false);
    for (const auto& op : graph.operators)
        for (const TensorIndex i : op.inputs)
            if (i != model::absent_tensor) read[static_cast<std::size_t>(i)] = true;
    bool elsewhere = false;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const auto index = static_cast<TensorIndex>(t);
        const bool is_named =
            name_of_tensor(plain_, index) == name || multiplier_name(plain_, index) == name;
        if (!is_named || plain_.constant(graph.tensors[t]).empty()) continue;
        if (read[t]) return false;
        elsewhere = true;
    }
    return elsewhere;
}

Result<Model> CompiledParameters::model() const {
    std::vector<Package> packages;
    packages.reserve(operators_.size());
    for (const CompiledOperator& op : operators_) packages.push_back(op.package);
    for (const Blob& blob : blobs_) {
        Executable& executable = packages[blob.op].executables[blob.executable];
        if (!equal_bytes(executable.parameters.view(), blob.bytes))
            executable.parameters = SharedBytes::copy_of(blob.bytes);
    }
    return with_packages(compiled_, operators_, std::move(packages));
}

}  // namespace reef::edgetpu
