// TensorFlow Lite in a process of its own: what the library does not check, it aborts or falls
// over.
#pragma once

#include <span>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

using TensorBytes = std::vector<std::vector<std::byte>>;

/// The outputs of runs one after another, of one interpreter with its states; `inputs`: of each
/// run. Errors: those of TflitePeer; unsupported where the process fell over.
[[nodiscard]] Result<std::vector<TensorBytes>> run_tflite_child(
    const model::Model& model, std::span<const TensorBytes> inputs);

}  // namespace reef::peers
