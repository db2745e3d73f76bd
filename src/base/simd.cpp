#include "base/simd.h"

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
bool machine_has_byte_products() {
#if defined(__x86_64__)
    constexpr unsigned features = 7, second_part = 1, avx_vnni = 1U << 4;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(features, second_part, &a, &b, &c, &d) != 0 && (a & avx_vnni) != 0;
#elif defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

/// The name of a target with sums of products of bytes beside it; none where they are part of the
/// target, or there are none.
std::string_view name_with_byte_products(std::int64_t target) {
    if (target == HWY_AVX2) return "AVX2_VNNI";
    if (target == HWY_NEON) return "NEON_DOTPROD";
    return {};
}

std::atomic<bool> byte_products_allowed = true;

void limit_targets(std::string_view name) {
    const bool products = machine_has_byte_products();
    std::string choices;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const std::string_view own = hwy::TargetName(target);
        const std::string_view with = products ? name_with_byte_products(target) : "";
        const bool is_with = name == with;
        if (name == own || is_with) {
            // Highway numbers better targets lower.
            hwy::DisableTargets(target - 1);
            byte_products_allowed = is_with;
            return;
        }
        for (const std::string_view choice : {with, own})
            if (!choice.empty()) choices += (choices.empty() ? "" : ", ") + std::string(choice);
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

bool has_byte_products() {
    static const bool machine = machine_has_byte_products();
    return machine && byte_products_allowed &&
           !name_with_byte_products(HWY_DYNAMIC_DISPATCH(target_of_dispatch)()).empty();
}

void allow_byte_products(bool allowed) {
    byte_products_allowed = allowed;
}

std::string_view simd_target_name() {
    apply_simd_choice();
    const std::int64_t target = HWY_DYNAMIC_DISPATCH(target_of_dispatch)();
    return has_byte_products() ? name_with_byte_products(target) : hwy::TargetName(target);
}

}  // namespace reef
#endif
