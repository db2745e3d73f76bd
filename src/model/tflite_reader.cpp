#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/tflite_opaque.h"
#include "model/tflite_options.h"
#include "model/tflite_survey.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {
namespace {

template <typename T>
std::vector<T> vector_of(const flatbuffers::Vector<T>* values) {
    if (values == nullptr) return {};
    return {values->begin(), values->end()};
}

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : text->str();
}

/// An absent vector of tables reads like an empty one.
template <typename T>
std::uint32_t count_of(const flatbuffers::Vector<flatbuffers::Offset<T>>* tables) {
    return tables == nullptr ? 0 : tables->size();
}

/// The same bytes, or a copy when their address is not a multiple of `alignment`.
SharedBytes aligned_to(std::uintptr_t alignment, const SharedBytes& bytes) {
    if (reinterpret_cast<std::uintptr_t>(bytes.view().data()) % alignment == 0) return bytes;
    return SharedBytes::copy_of(bytes.view());
}

/// Copies the graph out of a surveyed file.
class Reader {
  public:
    Reader(const SharedBytes& file, Survey survey)
        : file_(file), root_(*schema::GetModel(file.view().data())) {
        model_.not_preserved = std::move(survey.unknown);
    }

    Result<Model> read() && {
        if (root_.version() != 3) {
            return fail(Cause::unsupported,
                        fmt::format("schema version {}; version 3 is the one in use since 2017",
                                    root_.version()));
        }
        model_.version = root_.version();
        model_.description = text_of(root_.description());
        model_.metadata_buffer = vector_of(root_.metadata_buffer());
        REEF_CHECK(read_buffers());
        REEF_CHECK(read_codes());
        for (std::uint32_t i = 0; i < count_of(root_.subgraphs()); ++i) {
            model_.subgraphs.push_back(REEF_TRY(
                in_place(subgraph(*root_.subgraphs()->Get(i)), fmt::format("subgraph {}", i))));
        }
        read_metadata();
        read_signatures();
        align_wide_constants();
        if (count_of(root_.external_buffer_groups()) + count_of(root_.external_buffers()) > 0) {
            model_.not_preserved.emplace_back("the list of external buffers");
        }
        REEF_CHECK(validate(model_));
        return std::move(model_);
    }

  private:
    // -- Bytes ------------------------------------------------------------------------------------

    /// A view of the file; FlatBuffers align it to 4 at least.
    SharedBytes inside(const flatbuffers::Vector<std::uint8_t>* data) const {
        if (data == nullptr || data->size() == 0) return {};
        return {std::as_bytes(std::span(data->data(), data->size())), file_.owner()};
    }

    /// Bounds what the survey does not see: bytes that the model holds once for every reference.
    Status count_repeated(std::uint64_t size) {
        repeated_bytes_ += size;
        if (repeated_bytes_ <= expansion_limit(file_.size())) return {};
        return fail(Cause::bad_input, "the same bytes of the file are referred to too often", {},
                    "the file is damaged or hostile");
    }

    /// Bytes of the file outside the FlatBuffer, for files beyond 2 GiB.
    Result<SharedBytes> outside(std::uint64_t offset, std::uint64_t size) {
        const std::uint64_t end = file_.size();
        if (offset > end || size > end - offset) {
            return fail(Cause::bad_input,
                        fmt::format("{} bytes at byte {} lie outside the file of {} bytes", size,
                                    offset, end),
                        {}, "the file is truncated or damaged");
        }
        REEF_CHECK(count_repeated(size));
        return aligned_to(8, file_.part(offset, size));
    }

    /// Data stand in the FlatBuffer, or after it when `offset` is above 1 (TFLite's rule).
    Result<SharedBytes> either(const flatbuffers::Vector<std::uint8_t>* data, std::uint64_t offset,
                               std::uint64_t size, const std::string& place) {
        if (data != nullptr || offset <= 1) {
            if (offset > 1) {
                model_.not_preserved.push_back(place + ": data at an offset besides its own data");
            }
            return inside(data);
        }
        return in_place(outside(offset, size), place);
    }

    Status read_buffers() {
        if (root_.buffers() == nullptr) return fail(Cause::bad_input, "the model has no buffers");
        for (std::uint32_t i = 0; i < root_.buffers()->size(); ++i) {
            const schema::Buffer& buffer = *root_.buffers()->Get(i);
            model_.buffers.push_back(REEF_TRY(either(buffer.data(), buffer.offset(), buffer.size(),
                                                     fmt::format("buffer {}", i))));
        }
        return {};
    }

    // -- Operators --------------------------------------------------------------------------------

    Status read_codes() {
        for (std::uint32_t i = 0; i < count_of(root_.operator_codes()); ++i) {
            const schema::OperatorCode& code = *root_.operator_codes()->Get(i);
            const auto builtin = static_cast<Op>(
                std::max<std::int32_t>(code.deprecated_builtin_code(), code.builtin_code()));
            if (builtin == Op::custom && code.custom_code() == nullptr) {
                return fail(Cause::bad_input, "a custom operator without custom_code",
                            fmt::format("operator code {}", i));
            }
            codes_.push_back({builtin, text_of(code.custom_code()), code.version()});
        }
        return {};
    }

    Result<Operator> op(const schema::Operator& table, const std::string& place) {
        if (table.opcode_index() >= codes_.size()) {
            return fail(Cause::bad_input,
                        fmt::format("operator code {} of {}", table.opcode_index(), codes_.size()),
                        place);
        }
        Operator result;
        result.code = codes_[table.opcode_index()];
        REEF_CHECK(count_repeated(result.code.custom.size()));
        result.inputs = vector_of(table.inputs());
        result.outputs = vector_of(table.outputs());
        result.intermediates = vector_of(table.intermediates());
        if (const auto* flags = table.mutating_variable_inputs()) {
            for (const std::uint8_t flag : *flags) {
                result.mutating_variable_inputs.push_back(flag != 0);
            }
        }
        result.options = read_options(table);
        result.options_2 = opaque_from(table.builtin_options_2_type(), table.builtin_options_2());
        result.custom_options =
            REEF_TRY(either(table.custom_options(), table.large_custom_options_offset(),
                            table.large_custom_options_size(), place + ": custom options"));
        if (table.custom_options_format() != 0) {
            model_.not_preserved.push_back(fmt::format("{}: custom options of format {}", place,
                                                       table.custom_options_format()));
        }
        result.debug_metadata_index = table.debug_metadata_index();
        return result;
    }

    // -- Tensors ----------------------------------------------------------------------------------

    Quantization quantization(const schema::QuantizationParameters& table,
                              const std::string& place) {
        Quantization result;
        result.scale = vector_of(table.scale());
        result.zero_point = vector_of(table.zero_point());
        result.axis = table.quantized_dimension();
        result.min = vector_of(table.min());
        result.max = vector_of(table.max());
        result.custom = opaque_from(table.details_type(), table.details());
        if (result.scale.empty() && !result.zero_point.empty()) {
            model_.not_preserved.push_back(place + ": zero points without scales");
            result.zero_point.clear();
        }
        if (result.zero_point.empty()) result.zero_point.resize(result.scale.size(), 0);
        return result;
    }

    Result<Tensor> tensor(const schema::Tensor& table, const std::string& place) {
        if (table.external_buffer() != 0) {
            return fail(Cause::unsupported, "constant data in another file (external buffer)",
                        place, "convert the model with its weights inside");
        }
        Tensor result;
        result.name = text_of(table.name());
        result.shape = vector_of(table.shape());
        result.type = static_cast<ElementType>(table.type());
        result.buffer = table.buffer();
        if (table.quantization() != nullptr) {
            result.quantization = quantization(*table.quantization(), place);
        }
        result.is_variable = table.is_variable();
        result.has_rank = table.has_rank();
        if (table.shape_signature() != nullptr) {
            result.shape_signature = vector_of(table.shape_signature());
        }
        if (table.sparsity() != nullptr) result.sparsity = opaque_from(*table.sparsity());
        for (std::uint32_t i = 0; i < count_of(table.variant_tensors()); ++i) {
            result.variant_tensors.push_back(opaque_from(*table.variant_tensors()->Get(i)));
        }
        return result;
    }

    Result<Subgraph> subgraph(const schema::SubGraph& table) {
        Subgraph result;
        result.name = text_of(table.name());
        result.inputs = vector_of(table.inputs());
        result.outputs = vector_of(table.outputs());
        result.debug_metadata_index = table.debug_metadata_index();
        for (std::uint32_t i = 0; i < count_of(table.tensors()); ++i) {
            result.tensors.push_back(
                REEF_TRY(tensor(*table.tensors()->Get(i), fmt::format("tensor {}", i))));
        }
        for (std::uint32_t i = 0; i < count_of(table.operators()); ++i) {
            result.operators.push_back(
                REEF_TRY(op(*table.operators()->Get(i), fmt::format("operator {}", i))));
        }
        return result;
    }

    /// Some writers align data to 4 only: what holds 8-byte numbers is then copied.
    void align_wide_constants() {
        for (const Subgraph& subgraph : model_.subgraphs) {
            for (const Tensor& tensor : subgraph.tensors) {
                const bool wide = size_of(tensor.type).value_or(1) >= 8;
                if (!wide || tensor.buffer >= model_.buffers.size()) continue;
                SharedBytes& buffer = model_.buffers[tensor.buffer];
                buffer = aligned_to(8, buffer);
            }
        }
    }

    // -- What surrounds the graph -----------------------------------------------------------------

    void read_metadata() {
        for (std::uint32_t i = 0; i < count_of(root_.metadata()); ++i) {
            const schema::Metadata& entry = *root_.metadata()->Get(i);
            model_.metadata.push_back({text_of(entry.name()), entry.buffer()});
        }
    }

    static std::vector<SignatureTensor> signature_tensors(
        const flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>* maps) {
        std::vector<SignatureTensor> result;
        for (std::uint32_t i = 0; i < count_of(maps); ++i) {
            result.push_back({text_of(maps->Get(i)->name()), maps->Get(i)->tensor_index()});
        }
        return result;
    }

    void read_signatures() {
        for (std::uint32_t i = 0; i < count_of(root_.signature_defs()); ++i) {
            const schema::SignatureDef& def = *root_.signature_defs()->Get(i);
            model_.signatures.push_back({.key = text_of(def.signature_key()),
                                         .tag = text_of(def.deprecated_tag()),
                                         .subgraph = def.subgraph_index(),
                                         .inputs = signature_tensors(def.inputs()),
                                         .outputs = signature_tensors(def.outputs())});
        }
    }

    const SharedBytes& file_;
    const schema::Model& root_;
    std::vector<OperatorCode> codes_;
    std::uint64_t repeated_bytes_ = 0;
    Model model_;
};

}  // namespace

bool is_tflite(Bytes file) {
    return file.size() >= 8 && as_text(file.subspan(4, 4)) == "TFL3";
}

Result<Model> read_tflite(const SharedBytes& file) {
    // The accessors read numbers in place: a caller's buffer may start anywhere.
    const SharedBytes bytes = aligned_to(8, file);
    return Reader(bytes, REEF_TRY(survey_tflite(bytes.view()))).read();
}

Result<Model> load_tflite(const std::string& path) {
    return in_place(read_tflite(REEF_TRY(read_file(path))), path);
}

}  // namespace reef::model
