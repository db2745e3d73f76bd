// Which Highway targets the heavy vector kernels are compiled for. Include it before any Highway
// header, in every file that is compiled once per target and needs the same targets.
//
// The environment variable REEF_SIMD lowers the target that is dispatched to: SSE4, AVX2, AVX3
// (AVX-512) or AVX3_DL (with VNNI) on x86, SCALAR or EMU128 for none of them (as the compiler has
// it). Machines that have sums of products of bytes besides a target's instructions have other
// names for both, AVX2_VNNI or NEON_DOTPROD and NEON_I8MM, and the target's own name is without. It
// is read once, before the first kernel is prepared. A name that is unknown, not compiled in or
// above what the machine can do is reported through the log sink and changes nothing.
#pragma once

#include <cstdint>
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

/// Instructions for sums of products of bytes that machines have besides a target's, the better the
/// greater.
enum class ByteProducts : std::uint8_t {
    none,
    dot,     ///< of four bytes to a lane: AVX-VNNI beside AVX2, dotprod beside NEON
    matrix,  ///< of 2 x 8 bytes and 8 x 2: i8mm beside NEON, which has those of four then, too
};
inline constexpr ByteProducts every_byte_products[] = {ByteProducts::none, ByteProducts::dot,
                                                       ByteProducts::matrix};

/// Those that the machine has.
[[nodiscard]] ByteProducts machine_byte_products();
/// Those to be used beside the target that is dispatched to.
[[nodiscard]] ByteProducts byte_products();
/// As if the machine had none better than `most`.
void limit_byte_products(ByteProducts most);

/// Of what is dispatched to: "AVX2", ...
[[nodiscard]] std::string_view simd_target_name();

}  // namespace reef
