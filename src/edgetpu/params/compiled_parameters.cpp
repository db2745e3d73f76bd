#include "reef/edgetpu/compiled_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "edgetpu/package/own_compiler.h"
#include "edgetpu/params/stored_form.h"
#include "edgetpu/program/codec.h"

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

std::string multiplier_name(const Model& plain, const ParameterPart& part) {
    return name_of_tensor(plain, part.weights) + ":multiplier";
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

/// A layer's values on their way from and to arrays.
struct LayerArrays {
    Array weights;
    std::vector<std::int32_t> biases;
    std::vector<float> multipliers;
    std::vector<std::int32_t> zero_points;
};

Result<LayerArrays> decode(const Model& plain, const ParameterPart& part, Bytes blob) {
    const LayerLayout& layout = part.layout;
    const Tensor& tensor = tensor_of(plain, part.weights);
    const std::uint32_t channels = part.out_channels();
    LayerArrays arrays{
        .weights = array_like(tensor), .biases = {}, .multipliers = {}, .zero_points = {}};
    arrays.biases.resize(layout.vectors.biases ? channels : 0);
    arrays.multipliers.resize(layout.vectors.multipliers ? channels : 0);
    arrays.zero_points.resize(layout.vectors.zero_points ? channels : 0);
    // Taps that only padding meets are real zeros.
    if (!part.form.as_is())
        std::ranges::fill(arrays.weights.data, static_cast<std::byte>(zero_point(tensor)));
    REEF_CHECK(decode_stored(part, blob,
                             {weight_type(tensor), arrays.weights.data, arrays.biases,
                              arrays.multipliers, arrays.zero_points}));
    return arrays;
}

template <typename T>
Array array_of(ElementType type, const std::vector<std::int64_t>& shape,
               const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
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
        LayerArrays arrays = REEF_TRY(decode(plain_, part_, old));
        REEF_CHECK(take_biases(arrays));
        REEF_CHECK(take_multipliers(arrays));
        std::vector<std::byte> blob(old.size());
        const Tensor& tensor = tensor_of(plain_, part_.weights);
        const Array* weights = find(name_of_tensor(plain_, part_.weights));
        if (weights != nullptr && weights->type == ElementType::float32) {
            REEF_CHECK(check(*weights, tensor, ElementType::float32));
            if (tensor.type != ElementType::int8 || zero_point(tensor) != 0) {
                return fail(Cause::bad_argument, "real weights for a layer that is not int8",
                            tensor.name, "give them as uint8");
            }
            const auto values = values_of<float>(*weights);
            REEF_CHECK(encode_stored(part_,
                                     RealLayerValues{values, tensor.quantization->scale,
                                                     arrays.biases, arrays.multipliers},
                                     blob));
            return blob;
        }
        if (weights != nullptr) {
            REEF_CHECK(check(*weights, tensor, tensor.type));
            arrays.weights = *weights;
        }
        REEF_CHECK(encode_stored(part_,
                                 LayerValues{weight_type(tensor), arrays.weights.data,
                                             zero_point(tensor), arrays.biases, arrays.multipliers},
                                 blob));
        return blob;
    }

  private:
    const Array* find(const std::string& name) const {
        const auto found = given_.find(name);
        return found == given_.end() ? nullptr : found->second;
    }

    static Status check(const Array& array, const Tensor& tensor, ElementType type) {
        const bool same = std::ranges::equal(array.shape, tensor.shape);
        if (array.type == type && same) return {};
        return fail(Cause::bad_argument,
                    fmt::format("an array of type {} and another shape than {} {}",
                                reef::name_of(array.type), reef::name_of(type),
                                model::shape_text(tensor.shape)),
                    tensor.name, "reef weights get writes arrays of the right form");
    }

    Status take_biases(LayerArrays& arrays) const {
        if (part_.bias == model::absent_tensor) return {};
        const Array* given = find(name_of_tensor(plain_, part_.bias));
        if (given == nullptr) return {};
        const Tensor& tensor = tensor_of(plain_, part_.bias);
        REEF_CHECK(check(*given, tensor, ElementType::int32));
        auto values = values_of<std::int32_t>(*given);
        if (part_.layout.vectors.biases) {
            arrays.biases = std::move(values);
            return {};
        }
        if (std::ranges::all_of(values, [](std::int32_t value) { return value == 0; })) return {};
        return fail(Cause::unsupported,
                    "a bias, for which the compiled program has no place: it was compiled "
                    "without one",
                    tensor.name);
    }

    Status take_multipliers(LayerArrays& arrays) const {
        const std::string name = multiplier_name(plain_, part_);
        const Array* given = find(name);
        if (given == nullptr) return {};
        const std::size_t channels = part_.out_channels();
        if (!part_.layout.vectors.multipliers) {
            return fail(Cause::unsupported, "multipliers of a layer that stores none", name);
        }
        if (given->type != ElementType::float32 || given->data.size() != channels * 4) {
            return fail(Cause::bad_argument, fmt::format("not {} float32 values", channels), name);
        }
        arrays.multipliers = values_of<float>(*given);
        return {};
    }

    const Model& plain_;
    const ParameterPart& part_;
    const Given& given_;
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

/// Parts whose other form is in the blobs, and theirs is not, become so. An empty one: there is
/// none.
Status take_forms_that_are_there(const Model& plain, std::vector<ParameterPart>& parts,
                                 const std::vector<std::optional<ParameterPart>>& forms,
                                 const std::vector<Bytes>& blobs) {
    if (std::ranges::none_of(forms, [](const auto& form) { return form.has_value(); })) return {};
    const auto missing = REEF_TRY(place_parts(plain, parts, blobs, PartSearch::by_bytes)).missing;
    std::vector<ParameterPart> others = parts;
    for (const std::size_t i : missing)
        if (forms[i]) others[i] = *forms[i];
    const auto placed = REEF_TRY(place_parts(plain, others, blobs, PartSearch::by_bytes)).placed;
    std::vector<ParameterPart> lines;
    for (const PlacedPart& one : placed) {
        if (parts[one.part].unit_line && !others[one.part].unit_line)
            lines.push_back(unit_line_of(parts[one.part]));
        parts[one.part] = others[one.part];
    }
    return add_lines(plain, parts, lines, blobs);
}

/// Whether a program is of Reef's compiler.
bool is_own(const std::vector<CompiledOperator>& operators) {
    return std::ranges::any_of(operators, [](const CompiledOperator& op) {
        return op.package.compiler_version == own_compiler_version;
    });
}

Status find_forms(const Model& plain, const std::vector<CompiledOperator>& operators,
                  std::vector<ParameterPart>& parts, const std::vector<Bytes>& blobs) {
    const bool own = is_own(operators);
    std::vector<std::optional<ParameterPart>> forms(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!own) {
            forms[i] = REEF_TRY(other_form(parts[i]));
            continue;
        }
        auto mine = REEF_TRY(own_forms(parts[i]));
        parts[i] = std::move(mine.front());
        if (mine.size() > 1) forms[i] = std::move(mine[1]);
    }
    return take_forms_that_are_there(plain, parts, forms, blobs);
}

/// Reef's compiler makes tables and selections in ways of its own, which hold no number of the
/// model.
void leave_out_own_constants(const std::vector<ParameterPart>& parts, Placement& placement) {
    std::erase_if(placement.missing, [&](std::size_t part) {
        return parts[part].kind == PartKind::softmax_table ||
               parts[part].kind == PartKind::selection || parts[part].kind == PartKind::fill;
    });
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
        return fail(Cause::bad_argument, "the model to compare with is compiled", {},
                    "give the plain model that the compiler read");
    }
    opened.operators_ = REEF_TRY(packages_of(compiled));
    opened.on_chip_ = REEF_TRY(operators_on_chip(plain, compiled));
    opened.parts_ = REEF_TRY(plan_parameters(plain, opened.on_chip_));
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
    REEF_CHECK(find_forms(plain, opened.operators_, opened.parts_, views));
    opened.placement_ = REEF_TRY(place_parts(plain, opened.parts_, views, search));
    if (is_own(opened.operators_)) leave_out_own_constants(opened.parts_, opened.placement_);
    REEF_CHECK(leave_out_tables(opened.operators_, opened.parts_, opened.placement_));
    opened.plain_ = std::move(plain);
    opened.compiled_ = std::move(compiled);
    return opened;
}

Result<CompiledParameters> CompiledParameters::placed_as(std::vector<ParameterPart> parts,
                                                         const std::vector<PartHint>& hints) const {
    std::vector<Bytes> views;
    views.reserve(blobs_.size());
    for (const Blob& blob : blobs_) views.emplace_back(blob.bytes);
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
    NamedArrays arrays;
    const auto add = [&arrays](std::string name, Array array) {
        const bool known =
            std::ranges::any_of(arrays, [&](const auto& one) { return one.first == name; });
        if (!known) arrays.emplace_back(std::move(name), std::move(array));
    };
    for (const PlacedPart& placed : placement_.placed) {
        const ParameterPart& part = parts_[placed.part];
        if (part.kind != PartKind::layer) continue;
        LayerArrays layer = REEF_TRY(in_place(decode(plain_, part, bytes_of(placed)), part.name));
        add(name_of_tensor(plain_, part.weights), std::move(layer.weights));
        if (part.bias != model::absent_tensor) {
            Array bias = array_like(tensor_of(plain_, part.bias));
            if (!layer.biases.empty()) bias = array_of(bias.type, bias.shape, layer.biases);
            add(name_of_tensor(plain_, part.bias), std::move(bias));
        }
        if (!layer.multipliers.empty()) {
            add(multiplier_name(plain_, part),
                array_of(ElementType::float32,
                         {static_cast<std::int64_t>(layer.multipliers.size())}, layer.multipliers));
        }
    }
    return arrays;
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

Result<Model> CompiledParameters::model() const {
    Model out = compiled_;
    for (std::size_t op = 0; op < operators_.size(); ++op) {
        Package package = operators_[op].package;
        bool changed = false;
        for (const Blob& blob : blobs_) {
            if (blob.op != op) continue;
            Executable& executable = package.executables[blob.executable];
            if (equal_bytes(executable.parameters.view(), blob.bytes)) continue;
            executable.parameters = SharedBytes::copy_of(blob.bytes);
            changed = true;
        }
        if (!changed) continue;
        const std::uint64_t token = parameter_token(package);
        for (Executable& executable : package.executables) {
            executable.parameter_caching_token = token;
        }
        auto& graph = out.subgraphs[operators_[op].subgraph];
        REEF_CHECK(in_place(replace_package(graph.operators[operators_[op].index], package),
                            operators_[op].place));
    }
    return out;
}

std::uint64_t parameter_token(const Package& package) {
    // FNV-1a over the parameters and, so that two programs with the same ones differ, the old
    // token.
    std::uint64_t hash = 0xcbf29ce484222325U;
    const auto add = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
    for (const Executable& executable : package.executables) {
        for (int i = 0; i < 8; ++i) add(executable.parameter_caching_token >> (8 * i) & 255);
        for (const std::byte byte : executable.parameters.view()) {
            add(static_cast<std::uint64_t>(byte));
        }
    }
    return hash;
}

}  // namespace reef::edgetpu
