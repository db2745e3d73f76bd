// Which Highway targets the heavy vector kernels are compiled for. Include it before any Highway
// header, in every file that is compiled once per target and needs the same targets.
//
// The environment variable REEF_SIMD lowers the target that is dispatched to: SSE4, AVX2, AVX3
// (AVX-512) or AVX3_DL (with VNNI) on x86, SCALAR or EMU128 for none of them (as the compiler has
// it). It is read once, before the first kernel is prepared. A name that is unknown, not compiled
// in or above what the machine can do is reported through the log sink and changes nothing.
#pragma once

#include <string_view>

#if !defined(HWY_WANT_AVX3_DL)
#define HWY_WANT_AVX3_DL
#endif

// Vectors without a constant size cannot be held in arrays; SSSE3 machines do without.
#if !defined(HWY_DISABLED_TARGETS)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
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

/// Of what is dispatched to: "AVX2", ...
[[nodiscard]] std::string_view simd_target_name();

}  // namespace reef
