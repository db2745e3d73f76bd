// Where the time of a network goes, operator by operator.
#pragma once

#include <string>

#include "peers/report.h"
#include "reef/base/result.h"

namespace reef::peers {

/// Prints every operator's least time on all sides, of each network. Of ONNX Runtime they are its
/// profiler's, of the nodes that its optimiser made of the operator. TensorFlow Lite and LiteRT
/// have no column: neither the C interface of 2.9 nor WebNN has a profiler.
///
/// As JSON, schema_version 1: target, threads, rounds, networks[] with network, without_ort (why;
/// null where it ran) and operators[]: index, kernel, input, weights, output (shapes), reef_us,
/// xnnpack_us, on_xnnpack (else it is Reef's kernel there, too), ort_us (null without).
[[nodiscard]] Status print_operators(const Options& options);

}  // namespace reef::peers
