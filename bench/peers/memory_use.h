// How much memory a network takes, of a process that runs it and nothing else.
#pragma once

#include <string>

#include "peers/report.h"
#include "reef/base/result.h"

namespace reef::peers {

/// Prints, network by network, the most memory that was resident at once with Reef's kernels, with
/// XNNPACK's in front of them, and with TensorFlow Lite's and its XNNPACK, where they take it, each
/// in a process of its own that opens one and the same file and runs it twice.
///
/// As JSON, schema_version 1: threads, without_tflite (why; null where it is), networks[] with
/// network, reef_bytes and peers[]: name, bytes, ratio (Reef / peer).
[[nodiscard]] Status print_memory(const Options& options);

/// What such a process does: `side` is "reef", "xnnpack", "tflite" or "tflite-xnnpack". Prints
/// bytes.
[[nodiscard]] Status print_memory_of(const std::string& side, const std::string& path,
                                     const Options& options);

}  // namespace reef::peers
