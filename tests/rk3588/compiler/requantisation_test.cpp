// Constants of the DPU's stages.
#include "rk3588/compiler/requantisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

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

/// TFLite's kernel: both roundings with halves away from zero, the first with 31 bits.
std::int64_t tflite(std::int64_t acc, double multiplier) {
    int exponent = 0;
    const double mantissa = std::frexp(multiplier, &exponent);
    const auto first = std::llround(static_cast<double>(acc) * mantissa);
    return std::llround(std::ldexp(static_cast<double>(first), exponent));
}

/// All accumulators of a range: of the two scales, the one that is chosen loses fewer results.
TEST(Rk3588Requantisation, TheScaleThatLosesLessIsChosen) {
    for (const double mantissa : {0.51, 0.7, 0.93})
        for (int places = 1; places <= 12; ++places) {
            const double m = std::ldexp(mantissa, -places);
            auto r = *requantisation_of(std::array{m}, {});
            const auto end = static_cast<std::int64_t>(127 / m);
            const auto lost = [&](std::int32_t scale) {
                r.scale = scale;
                std::int64_t count = 0;
                for (std::int64_t acc = -end; acc <= end; ++acc) {
                    const auto first = static_cast<std::int64_t>(
                        std::nearbyint(std::ldexp(static_cast<double>(acc * r.factor), -15)));
                    count += converted(first, r) == tflite(acc, m) ? 0 : 1;
                }
                return static_cast<double>(count) / static_cast<double>(2 * end + 1);
            };
            const auto chosen = r.scale;
            const double plain = lost(1 << 14), pushed = lost((1 << 14) + 1);
            EXPECT_LE(chosen == 1 << 14 ? plain : pushed, std::min(plain, pushed) + 1e-3)
                << mantissa << " " << places;
        }
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

/// The least sum of errors that one of the converter's scales gives these multipliers, all tried.
double least_error(const std::vector<double>& multipliers) {
    const double greatest = std::ranges::max(multipliers);
    const double top = std::min(32767.0, std::floor(std::ldexp(greatest, 23)));
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t scale = 1 << 14; scale < 1 << 15; ++scale) {
        const int shift = static_cast<int>(std::floor(std::log2(top * scale / greatest)));
        const double unit = std::ldexp(scale, -shift);
        double error = 0;
        for (const double m : multipliers)
            error += std::abs(std::max(1.0, std::nearbyint(m / unit)) * unit / m - 1);
        least = std::min(least, error);
    }
    return least;
}

// Of many channels the search looks at the least 32. Of few the best of all 16384 scales is next to
// exact, and what the 2048 tried ones lack of it shows.
TEST(Rk3588Requantisation, AConverterForManyChannelsIsNextToTheBest) {
    std::mt19937 random(1);
    for (const std::size_t channels : {2U, 5U, 32U, 33U, 100U, 400U})
        for (const double spread : {0.5, 3.0, 8.0}) {
            std::vector<double> multipliers(channels);
            for (double& m : multipliers)
                m = 0.02 * std::exp(-std::uniform_real_distribution<>(0, spread)(random));
            const auto r = requantisation_of(multipliers, {});
            ASSERT_TRUE(r);
            const double unit = std::ldexp(r->scale, -r->shift);
            double error = 0;
            for (std::size_t c = 0; c < channels; ++c)
                error += std::abs(r->factors[c] * unit / multipliers[c] - 1);
            EXPECT_LE(error, 1.15 * least_error(multipliers) + 2e-5) << channels << " " << spread;
        }
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
    EXPECT_FALSE(requantisation_of(std::array{1e12}, {}));
    EXPECT_FALSE(requantisation_of(std::array{std::nan("")}, {}));
    EXPECT_FALSE(requantisation_of(std::array{0.01, 1e-320}, {}));
}

}  // namespace
}  // namespace reef::rk3588::lowering
