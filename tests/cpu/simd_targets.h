// Every instruction set that this machine has, one after the other in one process.
#pragma once

#include <gtest/gtest.h>

#include "base/simd.h"
// After it:
#include <hwy/targets.h>

#include "reef/cpu/placer.h"

namespace reef::test {

/// Calls use() with the vector kernels limited to each target that is compiled in and supported.
/// Kernels must be prepared inside. No other thread runs kernels meanwhile.
template <typename Use>
void on_every_target(const Use& use) {
    (void)cpu::simd_target();  // reads REEF_SIMD first, which sets targets itself
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        allow_byte_products(true);
        if (has_byte_products()) {
            SCOPED_TRACE(cpu::simd_target());
            use();
        }
        allow_byte_products(false);
        EXPECT_EQ(cpu::simd_target(), hwy::TargetName(target));
        use();
        allow_byte_products(true);
        hwy::SetSupportedTargetsForTest(0);
    }
}

}  // namespace reef::test
