// Where the time of a network goes, operator by operator.
#pragma once

#include <string>

#include "peers/report.h"
#include "reef/base/result.h"

namespace reef::peers {

/// Prints every operator's least time on all sides. Of ONNX Runtime they are its profiler's, of the
/// nodes that its optimiser made of the operator. TensorFlow Lite has no column: the C interface of
/// 2.9 has no profiler.
[[nodiscard]] Status print_operators(const std::string& path, const Options& options);

}  // namespace reef::peers
