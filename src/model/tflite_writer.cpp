#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "model/tflite_opaque.h"
#include "model/tflite_options.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {
namespace {

using flatbuffers::Offset;
template <typename T>
using OffsetOfVector = Offset<flatbuffers::Vector<T>>;
template <typename T>
using OffsetOfTables = OffsetOfVector<Offset<T>>;

// -- Size -----------------------------------------------------------------------------------------

// No less than what FlatBuffers add to one object: table, vtable, vector lengths, alignment.
constexpr std::uint64_t table_overhead = 256;

std::uint64_t size_of_table(const OpaqueTable& table) {
    return table_overhead + table.bytes.size();
}

std::uint64_t size_of_tensor(const Tensor& tensor) {
    std::uint64_t size = table_overhead + tensor.name.size() + 4 * tensor.shape.size();
    if (tensor.shape_signature) size += 4 * tensor.shape_signature->size();
    if (const auto& q = tensor.quantization) {
        size += table_overhead + 4 * (q->scale.size() + q->min.size() + q->max.size()) +
                8 * q->zero_point.size();
        if (q->custom) size += size_of_table(*q->custom);
    }
    if (tensor.sparsity) size += size_of_table(*tensor.sparsity);
    for (const OpaqueTable& variant : tensor.variant_tensors) size += size_of_table(variant);
    return size;
}

std::uint64_t size_of_operator(const Operator& op) {
    std::uint64_t size = 3 * table_overhead + op.code.custom.size() +
                         4 * (op.inputs.size() + op.outputs.size() + op.intermediates.size()) +
                         op.mutating_variable_inputs.size() + op.custom_options.size();
    if (const auto* opaque = std::get_if<OpaqueOptions>(&op.options)) size += opaque->bytes.size();
    if (const auto* reshape = std::get_if<ReshapeOptions>(&op.options)) {
        size += 4 * reshape->new_shape.size();
    }
    if (const auto* squeeze = std::get_if<SqueezeOptions>(&op.options)) {
        size += 4 * squeeze->squeeze_dims.size();
    }
    if (op.options_2) size += size_of_table(*op.options_2);
    return size;
}

/// An upper bound of the file's bytes.
std::uint64_t size_bound(const Model& model) {
    std::uint64_t size =
        table_overhead + model.description.size() + 4 * model.metadata_buffer.size();
    for (const SharedBytes& buffer : model.buffers) size += table_overhead + buffer.size();
    for (const Metadata& entry : model.metadata) size += table_overhead + entry.name.size();
    for (const Signature& signature : model.signatures) {
        size += table_overhead + signature.key.size() + signature.tag.size();
        for (const auto* list : {&signature.inputs, &signature.outputs}) {
            for (const auto& entry : *list) size += table_overhead + entry.name.size();
        }
    }
    for (const Subgraph& subgraph : model.subgraphs) {
        size += table_overhead + subgraph.name.size() +
                4 * (subgraph.inputs.size() + subgraph.outputs.size());
        for (const Tensor& tensor : subgraph.tensors) size += size_of_tensor(tensor);
        for (const Operator& op : subgraph.operators) size += size_of_operator(op);
    }
    return size;
}

// -- Contents -------------------------------------------------------------------------------------

class Writer {
  public:
    Writer(const Model& model, std::size_t size_bound) : model_(model), builder_(size_bound) {}

    flatbuffers::DetachedBuffer write() && {
        // FlatBuffers grow from the end: what is made first stands last. Data go there, so that a
        // reader finds the graph together at the front.
        const auto buffers = write_buffers();
        const auto subgraphs = write_subgraphs();
        const auto metadata = write_metadata();
        const auto signatures = write_signatures();
        const auto codes = write_codes();
        const auto description = text(model_.description);
        const auto metadata_buffer = numbers(model_.metadata_buffer);
        schema::FinishModelBuffer(
            builder_, schema::CreateModel(builder_, model_.version, codes, subgraphs, description,
                                          buffers, metadata_buffer, metadata, signatures));
        return builder_.Release();
    }

  private:
    // Empty strings and vectors are left out, except where TFLite reads them without asking.
    Offset<flatbuffers::String> text(const std::string& value) {
        return value.empty() ? 0 : builder_.CreateString(value);
    }
    template <typename T>
    OffsetOfVector<T> numbers(const std::vector<T>& values) {
        return values.empty() ? 0 : builder_.CreateVector(values);
    }
    OffsetOfVector<std::uint8_t> aligned_bytes(Bytes bytes) {
        if (bytes.empty()) return 0;
        builder_.ForceVectorAlignment(bytes.size(), 1, 16);
        return builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                     bytes.size());
    }
    template <typename T>
    OffsetOfTables<T> tables(const std::vector<Offset<T>>& offsets) {
        return offsets.empty() ? 0 : builder_.CreateVector(offsets);
    }

    OffsetOfTables<schema::Buffer> write_buffers() {
        std::vector<Offset<schema::Buffer>> offsets;
        for (const SharedBytes& buffer : model_.buffers) {
            const auto data = aligned_bytes(buffer.view());
            offsets.push_back(schema::CreateBuffer(builder_, data));
        }
        return builder_.CreateVector(offsets);
    }

    Offset<schema::QuantizationParameters> write_quantization(
        const std::optional<Quantization>& quantization) {
        if (!quantization) return 0;
        const Quantization& q = *quantization;
        const auto details = q.custom ? pack_quantization_details(builder_, *q.custom)
                                      : PackedUnion<schema::QuantizationDetails>{};
        const auto min = numbers(q.min);
        const auto max = numbers(q.max);
        const auto scale = numbers(q.scale);
        const auto zero_point = numbers(q.zero_point);
        return schema::CreateQuantizationParameters(builder_, min, max, scale, zero_point,
                                                    details.type, details.value, q.axis);
    }

    Offset<schema::Tensor> write_tensor(const Tensor& tensor) {
        std::vector<Offset<schema::VariantSubType>> variants;
        for (const OpaqueTable& variant : tensor.variant_tensors) {
            variants.push_back(pack_variant(builder_, variant));
        }
        const auto variant_tensors = tables(variants);
        const auto sparsity = tensor.sparsity ? pack_sparsity(builder_, *tensor.sparsity)
                                              : Offset<schema::SparsityParameters>();
        const auto quantization = write_quantization(tensor.quantization);
        // An empty signature differs from an absent one.
        const auto signature = tensor.shape_signature
                                   ? builder_.CreateVector(*tensor.shape_signature)
                                   : OffsetOfVector<std::int32_t>();
        const auto name = text(tensor.name);
        const auto shape = builder_.CreateVector(tensor.shape);
        return schema::CreateTensor(builder_, shape, static_cast<std::int8_t>(tensor.type),
                                    tensor.buffer, name, quantization, tensor.is_variable, sparsity,
                                    signature, tensor.has_rank, variant_tensors);
    }

    /// The index of the operator's code, which is added when it is new.
    std::uint32_t code_index(const OperatorCode& code) {
        const auto index = static_cast<std::uint32_t>(codes_.size());
        const auto [at, added] = code_indices_.try_emplace(
            std::tuple(code.builtin, std::string_view(code.custom), code.version), index);
        if (added) codes_.push_back(&code);
        return at->second;
    }

    Offset<schema::Operator> write_operator(const Operator& op) {
        const auto options = write_options(builder_, op.options);
        const auto options_2 = op.options_2 ? pack_builtin_options_2(builder_, *op.options_2)
                                            : PackedUnion<schema::BuiltinOptions2>{};
        const auto custom = aligned_bytes(op.custom_options.view());
        const std::vector<std::uint8_t> flags(op.mutating_variable_inputs.begin(),
                                              op.mutating_variable_inputs.end());
        const auto mutating = numbers(flags);
        const auto intermediates = numbers(op.intermediates);
        const auto outputs = builder_.CreateVector(op.outputs);
        const auto inputs = builder_.CreateVector(op.inputs);
        schema::OperatorBuilder table(builder_);
        table.add_opcode_index(code_index(op.code));
        table.add_inputs(inputs);
        table.add_outputs(outputs);
        table.add_builtin_options_type(options.type);
        table.add_builtin_options(options.value);
        table.add_custom_options(custom);
        table.add_mutating_variable_inputs(mutating);
        table.add_intermediates(intermediates);
        table.add_builtin_options_2_type(options_2.type);
        table.add_builtin_options_2(options_2.value);
        table.add_debug_metadata_index(op.debug_metadata_index);
        return table.Finish();
    }

    OffsetOfTables<schema::SubGraph> write_subgraphs() {
        std::vector<Offset<schema::SubGraph>> offsets;
        for (const Subgraph& subgraph : model_.subgraphs) {
            std::vector<Offset<schema::Tensor>> tensors;
            for (const Tensor& tensor : subgraph.tensors) tensors.push_back(write_tensor(tensor));
            std::vector<Offset<schema::Operator>> operators;
            for (const Operator& op : subgraph.operators) operators.push_back(write_operator(op));
            const auto name = text(subgraph.name);
            const auto operator_tables = builder_.CreateVector(operators);
            const auto outputs = builder_.CreateVector(subgraph.outputs);
            const auto inputs = builder_.CreateVector(subgraph.inputs);
            const auto tensor_tables = builder_.CreateVector(tensors);
            offsets.push_back(schema::CreateSubGraph(builder_, tensor_tables, inputs, outputs,
                                                     operator_tables, name,
                                                     subgraph.debug_metadata_index));
        }
        return builder_.CreateVector(offsets);
    }

    OffsetOfTables<schema::OperatorCode> write_codes() {
        std::vector<Offset<schema::OperatorCode>> offsets;
        for (const OperatorCode* entry : codes_) {
            const OperatorCode& code = *entry;
            const auto name =
                code.builtin == Op::custom ? builder_.CreateString(code.custom) : text(code.custom);
            const auto number = static_cast<std::int32_t>(code.builtin);
            const auto old_number = static_cast<std::int8_t>(std::min(number, 127));
            offsets.push_back(
                schema::CreateOperatorCode(builder_, old_number, name, code.version, number));
        }
        return builder_.CreateVector(offsets);
    }

    OffsetOfTables<schema::Metadata> write_metadata() {
        std::vector<Offset<schema::Metadata>> offsets;
        for (const Metadata& entry : model_.metadata) {
            const auto name = builder_.CreateString(entry.name);
            offsets.push_back(schema::CreateMetadata(builder_, name, entry.buffer));
        }
        return tables(offsets);
    }

    OffsetOfTables<schema::TensorMap> write_tensor_maps(const std::vector<SignatureTensor>& list) {
        std::vector<Offset<schema::TensorMap>> offsets;
        for (const SignatureTensor& entry : list) {
            const auto name = builder_.CreateString(entry.name);
            offsets.push_back(schema::CreateTensorMap(builder_, name, entry.tensor));
        }
        return builder_.CreateVector(offsets);
    }

    OffsetOfTables<schema::SignatureDef> write_signatures() {
        std::vector<Offset<schema::SignatureDef>> offsets;
        for (const Signature& signature : model_.signatures) {
            const auto inputs = write_tensor_maps(signature.inputs);
            const auto outputs = write_tensor_maps(signature.outputs);
            const auto key = builder_.CreateString(signature.key);
            const auto tag = text(signature.tag);
            offsets.push_back(schema::CreateSignatureDef(builder_, inputs, outputs, key, tag,
                                                         signature.subgraph));
        }
        return tables(offsets);
    }

    const Model& model_;
    flatbuffers::FlatBufferBuilder builder_;
    std::vector<const OperatorCode*> codes_;  ///< in the order of first use
    std::map<std::tuple<Op, std::string_view, std::int32_t>, std::uint32_t> code_indices_;
};

}  // namespace

Result<SharedBytes> tflite_file(const Model& model) {
    if (!model.not_preserved.empty()) {
        return fail(Cause::unsupported,
                    fmt::format("writing would lose what Reef's schema does not hold: {}",
                                model.not_preserved.front()),
                    {}, "such a model can be read and run, not rewritten");
    }
    if (auto status = validate(model); !status) {
        status.error().cause = Cause::bad_argument;
        return std::unexpected(std::move(status).error());
    }
    const std::uint64_t bound = size_bound(model);
    if (bound >= FLATBUFFERS_MAX_BUFFER_SIZE) {
        return fail(Cause::unsupported,
                    fmt::format("the model may take {} bytes; files of 2 GiB and more, with data "
                                "outside the FlatBuffer, are read but not written",
                                bound));
    }
    auto file = std::make_shared<const flatbuffers::DetachedBuffer>(
        Writer(model, static_cast<std::size_t>(bound)).write());
    const Bytes view = std::as_bytes(std::span(file->data(), file->size()));
    return SharedBytes(view, std::move(file));
}

Result<std::vector<std::byte>> write_tflite(const Model& model) {
    const auto file = REEF_TRY(tflite_file(model));
    return std::vector(file.view().begin(), file.view().end());
}

}  // namespace reef::model
