// Which of the CPU's kernels run.
#pragma once

#include <cstdint>
#include <string_view>

namespace reef::cpu {

/// The plain ones that read like the arithmetic's definition, or the vectorised ones where they
/// exist. Both give the same bytes for integer tensors.
enum class KernelSet : std::uint8_t { reference, fast };

/// The instruction set that the fast kernels use on this machine: "AVX2", "AVX3_DL" (AVX-512 with
/// VNNI), "NEON", ... The environment variable REEF_SIMD, read once, names a lower one; a name that
/// this machine does not have is reported through the log sink and ignored.
[[nodiscard]] std::string_view simd_target();

}  // namespace reef::cpu
