// Which Highway targets the heavy vector kernels are compiled for. Include it before any Highway
// header, in every file that is compiled once per target and needs the same targets.
//
// The environment variable REEF_SIMD lowers the target that is dispatched to: SSE4, AVX2, AVX3
// (AVX-512) or AVX3_DL (with VNNI) on x86, SCALAR or EMU128 for none of them (as the compiler has
// it). Machines that have sums of products of bytes besides a target's instructions have another
// name for both, AVX2_VNNI or NEON_DOTPROD, and the target's own name is without. It is read once,
// before the first kernel is prepared. A name that is unknown, not compiled in or above what the
// machine can do is reported through the log sink and changes nothing.
#pragma once

#include <string_view>

#include "base/vector_targets.h"

#if !defined(HWY_WANT_AVX3_DL)
#define HWY_WANT_AVX3_DL
#endif

/// In front of a short loop over an array of vectors: unrolled, the array becomes registers.
#if defined(__clang__)
#define REEF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define REEF_UNROLL _Pragma("GCC unroll 16")
#endif

namespace reef {

/// Applies REEF_SIMD. Cheap after the first call; thread-safe.
void apply_simd_choice();

/// Whether the target that is dispatched to is AVX2 on a machine with AVX-VNNI, or NEON on one with
/// dotprod, and sums of products of bytes are to be used.
[[nodiscard]] bool has_byte_products();
/// False: as if the machine had none; true: as it is.
void allow_byte_products(bool allowed);

/// Of what is dispatched to: "AVX2", ...
[[nodiscard]] std::string_view simd_target_name();

}  // namespace reef
