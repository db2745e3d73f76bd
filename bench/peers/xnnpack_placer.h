// XNNPACK as a placer: an executor with it in front of the CPU's kernels runs a network as a TFLite
// delegate would, on XNNPACK where it has the operator and on Reef's kernels elsewhere.
#pragma once

#include <pthreadpool.h>

#include <memory>

#include "graph/placer.h"

namespace reef::peers {

/// Null for one thread, as XNNPACK has it.
struct ThreadPoolDelete {
    void operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }
};
using ThreadPool = std::unique_ptr<pthreadpool, ThreadPoolDelete>;

/// Whether the library starts on this machine; before anything else. Below AVX-512 (REEF_SIMD) it
/// does without, too.
[[nodiscard]] bool start_xnnpack();

/// The kernels read up to XNN_EXTRA_BYTES behind their inputs and keep `pool`, which outlives them.
[[nodiscard]] std::shared_ptr<graph::Placer> xnnpack_placer(pthreadpool* pool);

}  // namespace reef::peers
