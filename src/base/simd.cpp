#include "base/simd.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "reef/base/log.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {

std::int64_t target_of_dispatch() {
    return HWY_TARGET;
}

}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef {

HWY_EXPORT(target_of_dispatch);

namespace {

/// Instructions that Highway 1.0 knows no target for.
ByteProducts byte_products_of_machine() {
#if defined(__x86_64__)
    constexpr unsigned features = 7;
    unsigned a = 0, b = 0, c = 0, d = 0;
#if defined(REEF_AVX_VNNI_BY_AVX512)
    constexpr unsigned avx512_vl = 1U << 31, avx512_vnni = 1U << 11;
    const bool has_dot = __get_cpuid_count(features, 0, &a, &b, &c, &d) != 0 &&
                         (b & avx512_vl) != 0 && (c & avx512_vnni) != 0;
#else
    constexpr unsigned second_part = 1, avx_vnni = 1U << 4;
    const bool has_dot =
        __get_cpuid_count(features, second_part, &a, &b, &c, &d) != 0 && (a & avx_vnni) != 0;
#endif
    return has_dot ? ByteProducts::dot : ByteProducts::none;
#elif defined(__aarch64__) && defined(__linux__)
    if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return ByteProducts::none;
    return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) == 0 ? ByteProducts::dot : ByteProducts::matrix;
#else
    return ByteProducts::none;
#endif
}

/// The name of a target with such products; none where they are part of the target, or there are
/// none beside it.
std::string_view name_with(ByteProducts products, std::int64_t target) {
    if (products == ByteProducts::none) return hwy::TargetName(target);
    if (target == HWY_AVX2 && products == ByteProducts::dot) return "AVX2_VNNI";
    if (target == HWY_NEON) return products == ByteProducts::dot ? "NEON_DOTPROD" : "NEON_I8MM";
    return {};
}

std::atomic<ByteProducts> most_byte_products = ByteProducts::matrix;

void limit_targets(std::string_view name) {
    std::string choices;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        for (const ByteProducts products :
             {ByteProducts::matrix, ByteProducts::dot, ByteProducts::none}) {
            const std::string_view choice = name_with(products, target);
            if (products > machine_byte_products() || choice.empty()) continue;
            if (name == choice) {
                // Highway numbers better targets lower.
                hwy::DisableTargets(target - 1);
                most_byte_products = products;
                return;
            }
            choices += (choices.empty() ? "" : ", ") + std::string(choice);
        }
    }
    log(LogLevel::warning,
        "REEF_SIMD=" + std::string(name) + " is ignored; this machine has " + choices);
}

}  // namespace

void apply_simd_choice() {
    static std::once_flag once;
    std::call_once(once, [] {
        const char* name = std::getenv("REEF_SIMD");
        if (name != nullptr && *name != '\0') limit_targets(name);
    });
}

ByteProducts machine_byte_products() {
    static const ByteProducts machine = byte_products_of_machine();
    return machine;
}

ByteProducts byte_products() {
    const ByteProducts most = std::min(machine_byte_products(), most_byte_products.load());
    return name_with(most, HWY_DYNAMIC_DISPATCH(target_of_dispatch)()).empty() ? ByteProducts::none
                                                                               : most;
}

void limit_byte_products(ByteProducts most) {
    most_byte_products = most;
}

std::string_view simd_target_name() {
    apply_simd_choice();
    return name_with(byte_products(), HWY_DYNAMIC_DISPATCH(target_of_dispatch)());
}

}  // namespace reef
#endif
