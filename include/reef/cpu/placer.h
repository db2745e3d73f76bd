// The CPU's kernels for an executor: bit-exact with TFLite 2.9's builtin kernels, or with the
// arithmetic of the Edge TPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace reef::graph {
class Placer;
}

namespace reef::cpu {

/// Which kernels run: the plain ones that read like the arithmetic's definition, or the vectorised
/// ones where they exist. Both give the same bytes for integer tensors.
enum class KernelSet : std::uint8_t { reference, fast };

/// How quantised operators compute. tflite: as TFLite 2.9's builtin kernels, bit for bit. edgetpu:
/// as the Edge TPU computes the operators that the vendor's compiler would place on it, with one
/// float32 multiplication per sum and ties to even, so that a chip's or a simulator's tensors can
/// be compared byte by byte; the others stay TFLite's. What the chip computes in a way that is not
/// known is refused by name.
enum class Arithmetic : std::uint8_t { tflite, edgetpu };

struct KernelOptions {
    KernelSet kernels = KernelSet::fast;
    Arithmetic arithmetic = Arithmetic::tflite;
};

/// Takes every operator that the CPU has a kernel for, and knows why it has none for another. With
/// Arithmetic::edgetpu a placement's reason says why the operator has that arithmetic, or why
/// TFLite's; else it is empty.
[[nodiscard]] std::shared_ptr<graph::Placer> placer(const KernelOptions& options = {});

/// The instruction set that the fast kernels use on this machine: "AVX2", "AVX3_DL" (AVX-512 with
/// VNNI), "NEON", ... The environment variable REEF_SIMD, read once, names a lower one; a name that
/// this machine does not have is reported through the log sink and ignored.
[[nodiscard]] std::string_view simd_target();

}  // namespace reef::cpu
