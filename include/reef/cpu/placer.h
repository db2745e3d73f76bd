// The CPU's kernels for an executor: bit-exact with TFLite 2.9's builtin kernels, or with a
// machine's own arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace reef::graph {
class Placer;
}

namespace reef::cpu {

/// Which kernels run: the plain ones that read like the arithmetic's definition, or the vectorised
/// ones where they exist. Both give the same bytes for integer tensors.
enum class KernelSet : std::uint8_t { reference, fast };

/// How a machine computes quantised operators: kernels that stand in for those that compute as
/// TFLite 2.9's builtin kernels do, so that the machine's tensors can be compared byte by byte. A
/// chip's room gives it. What the machine computes in a way that is not known is refused by name.
struct Arithmetic;

struct KernelOptions {
    KernelSet kernels = KernelSet::fast;
    /// Null: TFLite's. It lives as long as the process.
    const Arithmetic* arithmetic = nullptr;
    /// By operator, whether `arithmetic` computes it and not TFLite's; empty: all that it knows.
    std::vector<bool> in_arithmetic = {};
};

/// Takes every operator that the CPU has a kernel for, and knows why it has none for another. With
/// an arithmetic a placement's reason says why the operator has it, or why TFLite's; else it is
/// empty.
[[nodiscard]] std::shared_ptr<graph::Placer> placer(const KernelOptions& options = {});

/// The instruction set that the fast kernels use on this machine: "AVX2", "AVX3_DL" (AVX-512 with
/// VNNI), "NEON", ... The environment variable REEF_SIMD, read once, names a lower one; a name that
/// this machine does not have is reported through the log sink and ignored.
[[nodiscard]] std::string_view simd_target();

}  // namespace reef::cpu
