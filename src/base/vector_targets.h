// The instruction sets that vector code is compiled for. Include it, or simd.h, before any Highway
// header in every file that is compiled once per target: on ARM those without it do not compile.
#pragma once

// Vectors without a constant size cannot be held in arrays; SSSE3 machines do without. Highway
// behind 1.0 has three targets more, which Reef's kernels do not know, by their numbers there:
// AVX3_SPR, AVX3_ZEN4 and NEON_BF16. In 1.0 these are SVE2's, which is off anyhow, and nobody's.
// Builds under sanitizers leave out AVX-512 where the machine has none (cmake/reef_compiler.cmake).
#if !defined(REEF_TARGETS_LEFT_OUT)
#define REEF_TARGETS_LEFT_OUT 0
#endif
#if !defined(HWY_DISABLED_TARGETS)
#define HWY_DISABLED_TARGETS                                                              \
    (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | (1LL << 4) | \
     (1LL << 6) | (1LL << 26) | REEF_TARGETS_LEFT_OUT)
#endif
