// The TFLite file format: reading and writing a Model.
//
// Fields and defaults: TFLite's schema, file identifier TFL3. A file is verified by the FlatBuffers
// verifier before anything is read from it, and the graph's own rules are checked after: indices in
// range, shapes without negative or overflowing sizes, constant data as long as the tensor needs.
#pragma once

#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::model {

/// Whether the file says that it is one, whatever else is wrong with it.
[[nodiscard]] bool is_tflite(Bytes file);

/// Constant data are views into `file`, which the Model keeps alive; only data that a file places
/// off alignment are copied. Operators carry their code, so codes that no operator uses are left
/// out. Errors: bad_input with the place; unsupported for constant data in other files.
[[nodiscard]] Result<Model> read_tflite(const SharedBytes& file);

/// Lets the system begin to read those parts of a mapped file that read_tflite looks at: not the
/// constant data. For files that are read with FileAccess::scattered; of one that is damaged,
/// nothing or something else.
void prefetch_tables(Bytes file);

/// read_file and read_tflite, with the path as place.
[[nodiscard]] Result<Model> load_tflite(const std::string& path);

/// Deterministic: equal models give equal bytes. read_tflite(write_tflite(m)) == m.
/// Errors: bad_argument when the model breaks one of the rules that read_tflite checks; unsupported
/// when something would be lost (Model::not_preserved) or the file would exceed 2 GiB.
[[nodiscard]] Result<std::vector<std::byte>> write_tflite(const Model& model);
/// The same, not copied once more.
[[nodiscard]] Result<SharedBytes> tflite_file(const Model& model);

/// The rules that every readable model keeps; write_tflite and the Executor rely on them:
/// - schema version 3, at least one subgraph, every index in range; absent_tensor only among an
///   operator's inputs and intermediates;
/// - shapes >= 0, at most 2^40 bytes a tensor; constant data exactly as long as shape and type need
///   (sparse tensors and types without a fixed size excepted);
/// - one scale, or one per index of the quantised axis, and as many zero points (see Quantization);
/// - graph inputs, variable tensors and operator outputs are not constants; no output of a builtin
///   operator is also one of its inputs;
/// - padding, activation and opaque tables are of a known form.
[[nodiscard]] Status validate(const Model& model);

}  // namespace reef::model
