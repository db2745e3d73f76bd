// Whether vector registers hold anything above their lowest 128 bits: what baseline instructions
// wait for on Intel's processors (base/upper_halves-inl.h).
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace reef::test {

#if defined(__x86_64__)

/// As the processor tells the system, which saves no registers that are not in use.
/// Precondition: processor_tells_upper_halves().
[[nodiscard]] inline bool upper_halves_in_use() {
    unsigned low = 0, high = 0;
    // xgetbv, for which the baseline has no name.
    asm volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1));
    constexpr unsigned avx_state = 1U << 2U;
    return (low & avx_state) != 0;
}

/// Precondition: the processor has AVX2.
inline void clear_upper_halves() {
    asm volatile("vzeroupper");
}

/// Whether it does, at once in both directions: some emulators do not.
[[nodiscard]] inline bool processor_tells_upper_halves() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned state_leaf = 0xd, xgetbv_1 = 1U << 2U;
    if (__get_cpuid_count(state_leaf, 1, &a, &b, &c, &d) == 0 || (a & xgetbv_1) == 0 ||
        !__builtin_cpu_supports("avx2"))
        return false;
    asm volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    const bool used = upper_halves_in_use();
    clear_upper_halves();
    return used && !upper_halves_in_use();
}

#else

[[nodiscard]] inline bool upper_halves_in_use() {
    return false;
}
inline void clear_upper_halves() {}
[[nodiscard]] inline bool processor_tells_upper_halves() {
    return false;
}

#endif

/// Whether each of some calls leaves them in use, which were not before it; false where the
/// processor does not tell. One call says little: registers that a system or a hypervisor has
/// restored meanwhile are in use, too.
template <typename Kernel>
[[nodiscard]] bool leaves_upper_halves(const Kernel& call) {
    static const bool tells = processor_tells_upper_halves();
    constexpr int calls = 4;
    for (int i = 0; i < calls; ++i) {
        if (tells) clear_upper_halves();
        call();
        if (!tells || !upper_halves_in_use()) return false;
    }
    return true;
}

}  // namespace reef::test
