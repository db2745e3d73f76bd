// Constants of the DPU's stages.
#include "rk3588/compiler/requantisation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace reef::rk3588::lowering {
namespace {

TEST(Rk3588Requantisation, ScalesHaveFifteenBits) {
    for (double m = 1e-6; m < 4; m *= 1.37) {
        const auto s = nearest_scale(m);
        EXPECT_GE(s.scale, 1 << 14) << m;
        EXPECT_LT(s.scale, 1 << 15) << m;
        EXPECT_NEAR(std::ldexp(s.scale, -s.shift) / m, 1, 1.0 / (1 << 15)) << m;
    }
}

TEST(Rk3588Requantisation, TwoFactorsAreNearerThanOne) {
    for (double m = 1e-5; m < 0.5; m *= 1.37) {
        const auto r = two_factors(m);
        EXPECT_NEAR(r.factor * std::ldexp(r.scale, -r.shift) / m, 1, 3e-6) << m;
        EXPECT_LE(r.factor, std::max(1.0, m * (1 << 23))) << "saturates before int8 does";
    }
}

TEST(Rk3588Requantisation, TwoRoundingsAreTflites) {
    // 0.75 * 2^-3: a factor of 15 bits, then a shift of 3 that rounds ties away.
    const auto r = requantisation_of(std::array{0.75 / 8}, {});
    ASSERT_TRUE(r);
    EXPECT_EQ(r->factor, 3 << 13);
    EXPECT_EQ(r->factor_shift, 15);
    EXPECT_FALSE(r->away);
    EXPECT_EQ(converted(4, *r), 1);
    EXPECT_EQ(converted(12, *r), 2);
    EXPECT_EQ(converted(-4, *r), -1);
    EXPECT_EQ(converted(-12, *r), -2);
    EXPECT_EQ(converted(3, *r), 0);
    const auto round = requantisation_of(std::array{0.75 / 8}, {.assume_round = true});
    ASSERT_TRUE(round);
    EXPECT_TRUE(round->away);
    EXPECT_EQ(round->scale, 1 << 14);
}

TEST(Rk3588Requantisation, ChannelsShareAConverter) {
    const std::array multipliers{0.011, 0.004, 0.0007, 0.02};
    const auto r = requantisation_of(multipliers, {});
    ASSERT_TRUE(r);
    ASSERT_EQ(r->factors.size(), multipliers.size());
    EXPECT_TRUE(r->powers.empty());
    for (std::size_t c = 0; c < multipliers.size(); ++c)
        EXPECT_NEAR(r->factors[c] * std::ldexp(r->scale, -r->shift) / multipliers[c], 1, 2e-3);
    const auto nrdma = requantisation_of(multipliers, {.assume_nrdma = true});
    ASSERT_TRUE(nrdma);
    ASSERT_EQ(nrdma->powers.size(), multipliers.size());
    for (std::size_t c = 0; c < multipliers.size(); ++c)
        EXPECT_NEAR(std::ldexp(nrdma->factors[c], -nrdma->factor_shift) * nrdma->powers[c] *
                        std::ldexp(nrdma->scale, -nrdma->shift) / multipliers[c],
                    1, 2e-4);
}

TEST(Rk3588Requantisation, LimitsAreFoundWithTheConvertersRounding) {
    auto r = *requantisation_of(std::array{0.01}, {});
    r.zero = -20;
    limit(r, -20, 40);
    ASSERT_TRUE(r.most);
    EXPECT_TRUE(r.relu);
    EXPECT_EQ(converted(*r.most, r), 60);
    EXPECT_EQ(converted(*r.most + 1, r), 61);
}

TEST(Rk3588Requantisation, WhatHasNoConstantsIsRefused) {
    EXPECT_FALSE(requantisation_of(std::array{0.0}, {}));
    EXPECT_FALSE(requantisation_of(std::array{1e6}, {}));
    EXPECT_FALSE(requantisation_of(std::array{std::nan("")}, {}));
}

}  // namespace
}  // namespace reef::rk3588::lowering
