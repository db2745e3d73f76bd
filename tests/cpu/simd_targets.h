// Every instruction set that this machine has, one after the other in one process.
#pragma once

#include <gtest/gtest.h>

#include "base/simd.h"
// After it:
#include <hwy/targets.h>

#include "reef/cpu/placer.h"

namespace reef::test {

/// Calls use() with the vector kernels limited to each target that is compiled in and supported,
/// and to each kind of products of bytes that the machine has beside it. Kernels must be prepared
/// inside. No other thread runs kernels meanwhile.
template <typename Use>
void on_every_target(const Use& use) {
    (void)cpu::simd_target();  // reads REEF_SIMD first, which sets targets itself
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        for (const ByteProducts products : every_byte_products) {
            limit_byte_products(products);
            if (byte_products() != products) continue;
            if (products == ByteProducts::none) {
                EXPECT_EQ(cpu::simd_target(), hwy::TargetName(target));
            }
            SCOPED_TRACE(cpu::simd_target());
            use();
        }
        limit_byte_products(ByteProducts::matrix);
        hwy::SetSupportedTargetsForTest(0);
    }
}

}  // namespace reef::test
