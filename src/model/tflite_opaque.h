// Tables that Reef keeps without looking inside, as FlatBuffers of their own.
//
// Reading copies a table out of a verified file; writing puts it into the file being built. The
// bytes are FlatBuffers' own canonical packing, so equal tables have equal bytes.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <optional>

#include "reef/base/result.h"
#include "reef/model/graph.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {

/// A union member; nothing for NONE and for members that the schema does not have.
[[nodiscard]] std::optional<OpaqueTable> opaque_from(schema::QuantizationDetails type,
                                                     const void* table);
[[nodiscard]] std::optional<OpaqueTable> opaque_from(schema::BuiltinOptions2 type,
                                                     const void* table);
[[nodiscard]] OpaqueOptions opaque_from(schema::BuiltinOptions type, const void* table);
[[nodiscard]] OpaqueTable opaque_from(const schema::SparsityParameters& table);
[[nodiscard]] OpaqueTable opaque_from(const schema::VariantSubType& table);

/// bad_argument unless the bytes are the canonical FlatBuffer of a table that may stand there.
[[nodiscard]] Status check_quantization_details(const OpaqueTable& table);
[[nodiscard]] Status check_builtin_options_2(const OpaqueTable& table);
[[nodiscard]] Status check_builtin_options(const OpaqueOptions& options);
[[nodiscard]] Status check_sparsity(const OpaqueTable& table);
[[nodiscard]] Status check_variant(const OpaqueTable& table);

template <typename Type>
struct PackedUnion {
    Type type = Type::NONE;
    flatbuffers::Offset<void> value;
};

// Precondition of all: the table passed its check.
[[nodiscard]] PackedUnion<schema::QuantizationDetails> pack_quantization_details(
    flatbuffers::FlatBufferBuilder& builder, const OpaqueTable& table);
[[nodiscard]] PackedUnion<schema::BuiltinOptions2> pack_builtin_options_2(
    flatbuffers::FlatBufferBuilder& builder, const OpaqueTable& table);
[[nodiscard]] PackedUnion<schema::BuiltinOptions> pack_builtin_options(
    flatbuffers::FlatBufferBuilder& builder, const OpaqueOptions& options);
[[nodiscard]] flatbuffers::Offset<schema::SparsityParameters> pack_sparsity(
    flatbuffers::FlatBufferBuilder& builder, const OpaqueTable& table);
[[nodiscard]] flatbuffers::Offset<schema::VariantSubType> pack_variant(
    flatbuffers::FlatBufferBuilder& builder, const OpaqueTable& table);

}  // namespace reef::model
