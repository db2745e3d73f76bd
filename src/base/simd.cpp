#include "base/simd.h"

#include <cstdlib>
#include <mutex>
#include <string>

#include "reef/base/log.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {

const char* target_name() {
    return hwy::TargetName(HWY_TARGET);
}

}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef {

HWY_EXPORT(target_name);

namespace {

void limit_targets(std::string_view name) {
    std::string choices;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        if (name == hwy::TargetName(target)) {
            // Highway numbers better targets lower.
            hwy::DisableTargets(target - 1);
            return;
        }
        choices += (choices.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
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

std::string_view simd_target_name() {
    apply_simd_choice();
    return HWY_DYNAMIC_DISPATCH(target_name)();
}

}  // namespace reef
#endif
