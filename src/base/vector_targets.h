// The instruction sets that vector code is compiled for. Include it, or simd.h, before any Highway
// header in every file that is compiled once per target: on ARM those without it do not compile.
#pragma once

// Vectors without a constant size cannot be held in arrays; SSSE3 machines do without.
#if !defined(HWY_DISABLED_TARGETS)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
