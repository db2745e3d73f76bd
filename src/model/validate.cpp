#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/tflite_opaque.h"
#include "reef/model/tflite.h"

namespace reef::model {
namespace {

std::unexpected<Error> bad(std::string what) {
    return fail(Cause::bad_input, std::move(what));
}

// -- Tensors --------------------------------------------------------------------------------------

// Large enough for every model, small enough that sums of sizes cannot overflow.
constexpr std::int64_t most_bytes = std::int64_t{1} << 40;

Status check_shape(const Tensor& tensor) {
    const std::size_t element_size = size_of(tensor.type).value_or(1);
    std::int64_t bytes = static_cast<std::int64_t>(element_size);
    for (const std::int32_t size : tensor.shape) {
        if (size < 0) return bad(fmt::format("negative size {} in its shape", size));
        // Zero sizes are left out, so that the product cannot overflow in any order.
        if (size > 0 && bytes > most_bytes / size) {
            return bad(
                fmt::format("the shape {} has more than 2^40 bytes", shape_text(tensor.shape)));
        }
        if (size > 0) bytes *= size;
    }
    return {};
}

struct Range {
    std::int64_t low;
    std::int64_t high;
};

Range zero_point_range(ElementType type) {
    switch (type) {
        case ElementType::uint8:
            return {0, 255};
        case ElementType::int8:
            return {-128, 127};
        case ElementType::int16:
            return {-32768, 32767};
        default:
            return {std::numeric_limits<std::int32_t>::min(),
                    std::numeric_limits<std::int32_t>::max()};
    }
}

Status check_axis(const Tensor& tensor, const Quantization& q) {
    const auto rank = static_cast<std::int64_t>(tensor.shape.size());
    if (q.axis < 0 || (rank > 0 && q.axis >= rank)) {
        return bad(fmt::format("quantised axis {} of a tensor with {} axes", q.axis, rank));
    }
    if (q.scale.size() == 1) return {};
    const std::int64_t channels = rank == 0 ? 1 : tensor.shape[static_cast<std::size_t>(q.axis)];
    if (static_cast<std::int64_t>(q.scale.size()) == channels) return {};
    return bad(
        fmt::format("{} scales for the {} indices of axis {}", q.scale.size(), channels, q.axis));
}

Status check_quantization(const Tensor& tensor, const Quantization& q) {
    if (q.custom) REEF_CHECK(check_quantization_details(*q.custom));
    if (q.zero_point.size() != q.scale.size()) {
        return bad(
            fmt::format("{} zero points for {} scales", q.zero_point.size(), q.scale.size()));
    }
    if (!q.quantized()) return {};
    REEF_CHECK(check_axis(tensor, q));
    for (const float scale : q.scale) {
        if (!std::isfinite(scale) || scale < 0) return bad(fmt::format("scale {}", scale));
    }
    const Range range = zero_point_range(tensor.type);
    for (const std::int64_t zero_point : q.zero_point) {
        if (zero_point < range.low || zero_point > range.high) {
            return bad(fmt::format("zero point {} of type {}", zero_point, name_of(tensor.type)));
        }
    }
    return {};
}

Status check_data(const Model& model, const Tensor& tensor) {
    if (tensor.buffer >= model.buffers.size()) {
        return bad(fmt::format("buffer {} of {}", tensor.buffer, model.buffers.size()));
    }
    const std::size_t held = model.constant(tensor).size();
    if (held == 0) return {};
    if (tensor.is_variable) return bad("a variable tensor with constant data");
    const auto needed = tensor.byte_count();
    if (tensor.sparsity || !needed || static_cast<std::int64_t>(held) == *needed) return {};
    return bad(fmt::format("buffer {} holds {} bytes, but {} {} needs {}", tensor.buffer, held,
                           shape_text(tensor.shape), name_of(tensor.type), *needed));
}

Status check_tensor(const Model& model, const Tensor& tensor) {
    REEF_CHECK(check_shape(tensor));
    REEF_CHECK(check_data(model, tensor));
    if (tensor.quantization) REEF_CHECK(check_quantization(tensor, *tensor.quantization));
    if (tensor.sparsity) REEF_CHECK(check_sparsity(*tensor.sparsity));
    for (const OpaqueTable& variant : tensor.variant_tensors) REEF_CHECK(check_variant(variant));
    return {};
}

// -- Operators ------------------------------------------------------------------------------------

enum class Absent : bool { refused, allowed };

Status check_indices(const Subgraph& subgraph, const std::vector<TensorIndex>& indices,
                     const char* role, Absent absent) {
    const auto count = static_cast<std::int64_t>(subgraph.tensors.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const TensorIndex index = indices[i];
        if (index == absent_tensor && absent == Absent::allowed) continue;
        if (index >= 0 && index < count) continue;
        return bad(fmt::format("{} {} is tensor {} of {}", role, i, index, count));
    }
    return {};
}

Status check_not_constant(const Model& model, const Subgraph& subgraph,
                          const std::vector<TensorIndex>& indices, const char* role) {
    for (const TensorIndex index : indices) {
        const Tensor& tensor = subgraph.tensors[static_cast<std::size_t>(index)];
        if (model.constant(tensor).empty()) continue;
        return bad(fmt::format("{} {} has constant data", role, place_of_tensor(subgraph, index)));
    }
    return {};
}

struct OptionsCheck {
    Status operator()(const std::monostate&) const { return {}; }
    Status operator()(const OpaqueOptions& options) const { return check_builtin_options(options); }
    template <typename O>
    Status operator()(const O& options) const {
        if constexpr (requires { options.padding; }) {
            if (options.padding > Padding::valid) {
                return bad(fmt::format("padding number {}", static_cast<int>(options.padding)));
            }
        }
        if constexpr (requires { options.activation; }) {
            if (options.activation > Activation::sign_bit) {
                return bad(
                    fmt::format("activation number {}", static_cast<int>(options.activation)));
            }
        }
        return {};
    }
};

Status check_operator(const Model& model, const Subgraph& subgraph, const Operator& op) {
    if (static_cast<std::int32_t>(op.code.builtin) < 0) {
        return bad(fmt::format("operator number {}", static_cast<int>(op.code.builtin)));
    }
    REEF_CHECK(check_indices(subgraph, op.inputs, "input", Absent::allowed));
    REEF_CHECK(check_indices(subgraph, op.outputs, "output", Absent::refused));
    REEF_CHECK(check_indices(subgraph, op.intermediates, "intermediate", Absent::allowed));
    REEF_CHECK(check_not_constant(model, subgraph, op.outputs, "output"));
    REEF_CHECK(std::visit(OptionsCheck{}, op.options));
    if (op.options_2) REEF_CHECK(check_builtin_options_2(*op.options_2));
    if (op.code.builtin == Op::custom) return {};  // may forward a tensor
    std::vector<TensorIndex> inputs = op.inputs;
    std::ranges::sort(inputs);
    for (const TensorIndex output : op.outputs) {
        if (!std::ranges::binary_search(inputs, output)) continue;
        return bad(place_of_tensor(subgraph, output) + " is both input and output");
    }
    return {};
}

Status check_subgraph(const Model& model, const Subgraph& subgraph) {
    for (std::size_t i = 0; i < subgraph.tensors.size(); ++i) {
        auto status = check_tensor(model, subgraph.tensors[i]);
        if (status) continue;
        return in_place(std::move(status), place_of_tensor(subgraph, static_cast<TensorIndex>(i)));
    }
    REEF_CHECK(check_indices(subgraph, subgraph.inputs, "graph input", Absent::refused));
    REEF_CHECK(check_indices(subgraph, subgraph.outputs, "graph output", Absent::refused));
    REEF_CHECK(check_not_constant(model, subgraph, subgraph.inputs, "graph input"));
    for (std::size_t i = 0; i < subgraph.operators.size(); ++i) {
        auto status = check_operator(model, subgraph, subgraph.operators[i]);
        if (!status) return in_place(std::move(status), place_of(subgraph, i));
    }
    return {};
}

// -- What surrounds the graph ---------------------------------------------------------------------

Status check_signature(const Model& model, const Signature& signature) {
    if (signature.subgraph >= model.subgraphs.size()) {
        return bad(fmt::format("subgraph {} of {}", signature.subgraph, model.subgraphs.size()));
    }
    const std::size_t count = model.subgraphs[signature.subgraph].tensors.size();
    for (const auto* list : {&signature.inputs, &signature.outputs}) {
        for (const SignatureTensor& entry : *list) {
            if (entry.tensor < count) continue;
            return bad(fmt::format("'{}' is tensor {} of {}", entry.name, entry.tensor, count));
        }
    }
    return {};
}

Status check_surroundings(const Model& model) {
    for (std::size_t i = 0; i < model.metadata.size(); ++i) {
        if (model.metadata[i].buffer < model.buffers.size()) continue;
        return fail(Cause::bad_input,
                    fmt::format("buffer {} of {}", model.metadata[i].buffer, model.buffers.size()),
                    fmt::format("metadata {}", i));
    }
    for (std::size_t i = 0; i < model.signatures.size(); ++i) {
        auto status = check_signature(model, model.signatures[i]);
        if (!status) return in_place(std::move(status), fmt::format("signature {}", i));
    }
    return {};
}

}  // namespace

Status validate(const Model& model) {
    if (model.version != 3) return bad(fmt::format("schema version {}, not 3", model.version));
    if (model.subgraphs.empty()) return bad("the model has no subgraph");
    for (std::size_t i = 0; i < model.subgraphs.size(); ++i) {
        auto status = check_subgraph(model, model.subgraphs[i]);
        if (!status) return in_place(std::move(status), fmt::format("subgraph {}", i));
    }
    return check_surroundings(model);
}

}  // namespace reef::model
