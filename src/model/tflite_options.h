// Options of builtin operators: between the file's tables and Reef's typed structs.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "model/tflite_opaque.h"
#include "reef/model/operator.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {

/// Typed when Reef knows the table, opaque otherwise, monostate when the operator has none.
[[nodiscard]] Options read_options(const schema::Operator& op);

/// Precondition: opaque options passed check_builtin_options.
[[nodiscard]] PackedUnion<schema::BuiltinOptions> write_options(
    flatbuffers::FlatBufferBuilder& builder, const Options& options);

}  // namespace reef::model
