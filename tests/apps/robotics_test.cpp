#include "reef/apps/robotics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace reef::apps {
namespace {

using Zones = std::array<std::uint8_t, looming_zones>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Tau, IsTheCentreOverTheMeanOfTheOthers) {
    EXPECT_DOUBLE_EQ(tau(Zones{10, 10, 10, 10, 10, 10, 10, 10, 10}), 1);
    EXPECT_DOUBLE_EQ(tau(Zones{1, 2, 3, 4, 90, 6, 7, 8, 9}), 90 / 5.0);
    EXPECT_DOUBLE_EQ(tau(Zones{8, 8, 8, 8, 2, 8, 8, 8, 8}), 0.25);
    EXPECT_DOUBLE_EQ(tau(Zones{5, 0, 0, 0, 0, 0, 0, 0, 0}), 0);
}

TEST(Tau, StaysFiniteWithoutActivity) {
    EXPECT_DOUBLE_EQ(tau(Zones{}), 1);
    EXPECT_DOUBLE_EQ(tau(Zones{0, 0, 0, 0, 1, 0, 0, 0, 0}), max_tau);
    EXPECT_DOUBLE_EQ(tau(Zones{0, 0, 0, 0, 255, 0, 0, 0, 1}), max_tau);
}

TEST(Tau, NeverExceedsItsLimit) {
    std::mt19937 random(1);
    for (int i = 0; i < 10000; ++i) {
        Zones zones{};
        for (auto& z : zones) z = static_cast<std::uint8_t>(random() % (i % 2 == 0 ? 2 : 256));
        const double t = tau(zones);
        ASSERT_GE(t, 0);
        ASSERT_LE(t, max_tau);
    }
}

TEST(TimeToContact, IsExactForTauThatGoesAsOneOverDistance) {
    const double speed = 2;
    const double dt = 0.1;
    for (double distance = 0.5; distance < 10; distance += 0.5) {
        const auto seconds = time_to_contact(3 / (distance + speed * dt), 3 / distance, dt);
        ASSERT_TRUE(seconds);
        EXPECT_NEAR(*seconds, distance / speed, 1e-9);
    }
}

TEST(TimeToContact, IsNothingWhenTauDoesNotGrowOrMeansNothing) {
    EXPECT_EQ(time_to_contact(1, 1, 0.1), std::nullopt);
    EXPECT_EQ(time_to_contact(2, 1, 0.1), std::nullopt);
    for (const double bad : {0.0, -1.0, infinity, nan}) {
        EXPECT_EQ(time_to_contact(bad, 1, 0.1), std::nullopt);
        EXPECT_EQ(time_to_contact(1, bad, 0.1), std::nullopt);
        EXPECT_EQ(time_to_contact(1, 2, bad), std::nullopt);
    }
}

TEST(ApproachEstimator, FollowsAnApproachAtConstantSpeed) {
    ApproachEstimator estimator(6);
    const double dt = 0.05;
    for (int i = 0; i < 40; ++i) {
        const double left = 3 - i * dt;
        const auto estimate = estimator.update(4 / left, dt);
        if (i < 2) {
            EXPECT_EQ(estimate.motion, Motion::steady);
            continue;
        }
        if (i < 6) continue;
        ASSERT_EQ(estimate.motion, Motion::approaching) << "frame " << i;
        EXPECT_NEAR(estimate.time_to_contact.value(), left, 1e-6);
    }
}

TEST(ApproachEstimator, ToleratesNoiseAndSaysSteadyForIt) {
    std::mt19937 random(2);
    std::normal_distribution<double> noise(0, 0.02);
    ApproachEstimator still(10);
    ApproachEstimator moving(10);
    int alarms = 0;
    for (int i = 0; i < 400; ++i)
        alarms += still.update(1.5 * (1 + noise(random)), 0.1).motion != Motion::steady;
    EXPECT_LT(alarms, 12);
    for (int i = 0; i < 40; ++i) {
        const double left = 5 - i * 0.1;
        const auto estimate = moving.update(4 / left * (1 + noise(random)), 0.1);
        if (i < 10) continue;
        ASSERT_EQ(estimate.motion, Motion::approaching);
        EXPECT_NEAR(estimate.time_to_contact.value() / left, 1, 0.6);
    }
}

TEST(ApproachEstimator, SeesRecedingAndConstantTau) {
    ApproachEstimator estimator(5);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(estimator.update(2, 0.1).motion, Motion::steady);
    ApproachEstimator receding(5);
    ApproachEstimator::Estimate estimate;
    for (int i = 0; i < 10; ++i) estimate = receding.update(4 / (1 + i * 0.1), 0.1);
    EXPECT_EQ(estimate.motion, Motion::receding);
    EXPECT_EQ(estimate.time_to_contact, std::nullopt);
}

TEST(ApproachEstimator, StartsAnewAfterMeaninglessInput) {
    for (const double bad : {0.0, -1.0, infinity, nan}) {
        ApproachEstimator estimator(4);
        for (int i = 0; i < 10; ++i) estimator.update(1 / (2 - i * 0.1), 0.1);
        EXPECT_EQ(estimator.update(bad, 0.1).motion, Motion::steady);
        EXPECT_EQ(estimator.update(1.2, 0.1).motion, Motion::steady);
        EXPECT_EQ(estimator.update(1.4, 0.1).motion, Motion::steady);
        EXPECT_EQ(estimator.update(1.7, 0.1).motion, Motion::approaching);
    }
}

TEST(GaborKernel, HasTheFormulasSymmetriesAndSize) {
    const GaborOptions options;
    for (std::int32_t c = 0; c < options.channels(); ++c) {
        const auto kernel = gabor_kernel(options, c);
        ASSERT_EQ(kernel.size(), 49U);
        EXPECT_DOUBLE_EQ(kernel[24], 1) << "the middle is the largest";
        for (std::size_t i = 0; i < kernel.size(); ++i) {
            EXPECT_LE(std::abs(kernel[i]), 1);
            EXPECT_NEAR(kernel[i], kernel[48 - i], 1e-12) << "even about the middle";
        }
    }
    // One pixel across the wave of sigma 1.5: exp(-1 / 4.5) cos(2 pi / 3).
    EXPECT_NEAR(gabor_kernel(options, 0)[17], -0.5 * std::exp(-1 / 4.5), 1e-12);
    EXPECT_NEAR(gabor_kernel(options, 2)[23], -0.5 * std::exp(-1 / 4.5), 1e-12);
}

/// The message of a refusal, or "accepted".
template <typename T>
std::string refusal(const Result<T>& result) {
    if (result) return "accepted";
    EXPECT_EQ(result.error().cause, Cause::bad_argument);
    return result.error().message();
}

TEST(LoomingModel, RefusesWhatCannotWorkByName) {
    using testing::HasSubstr;
    const auto sized = [](std::int32_t h, std::int32_t w) {
        return refusal(looming_model({.height = h, .width = w, .scales = {}}));
    };
    EXPECT_THAT(sized(2, 64), HasSubstr("height 2 is too small"));
    EXPECT_THAT(sized(64, 0), HasSubstr("width 0 is too small"));
    EXPECT_THAT(sized(-64, 64), HasSubstr("height -64 is too small"));
    EXPECT_THAT(sized(5, 64), HasSubstr("height 5 cannot be divided into 3 zones"));
    EXPECT_THAT(sized(64, 8), HasSubstr("width 8 cannot be divided into 3 zones"));
    EXPECT_THAT(sized(64, 2147483647), HasSubstr("width 2147483647 is above 4096"));
    LoomingOptions options;
    options.scales.y_square = 0;
    EXPECT_THAT(refusal(looming_model(options)), HasSubstr("the scale of the y square"));
    options.scales = {.x_response = {1, 200}};
    EXPECT_THAT(refusal(looming_model(options)), HasSubstr("the zero point of the x response"));
    options.scales = {.input = std::numeric_limits<float>::quiet_NaN()};
    EXPECT_THAT(refusal(looming_model(options)), HasSubstr("the scale of the input"));
}

TEST(GaborModel, RefusesWhatCannotWorkByName) {
    using testing::HasSubstr;
    const auto with = [](auto change) {
        GaborOptions options;
        change(options);
        return refusal(gabor_model(options));
    };
    EXPECT_THAT(with([](auto& o) { o.height = 6; }), HasSubstr("height 6 is smaller than the 7x7"));
    EXPECT_THAT(with([](auto& o) { o.width = 5000; }), HasSubstr("width 5000 is above 4096"));
    EXPECT_THAT(with([](auto& o) { o.width = 66, o.pool = 4; }),
                HasSubstr("width 66 is not a multiple of the pool's side 4"));
    EXPECT_THAT(with([](auto& o) { o.pool = 0; }), HasSubstr("pool side 0"));
    EXPECT_THAT(with([](auto& o) { o.kernel_size = 8; }), HasSubstr("kernel size 8"));
    EXPECT_THAT(with([](auto& o) { o.kernel_size = 101; }), HasSubstr("kernel size 101"));
    EXPECT_THAT(with([](auto& o) { o.orientations = 0; }), HasSubstr("0 orientations"));
    EXPECT_THAT(with([](auto& o) { o.orientations = 2147483647; }), HasSubstr("orientations"));
    EXPECT_THAT(with([](auto& o) { o.sigmas.clear(); }), HasSubstr("at 0 scales"));
    EXPECT_THAT(with([](auto& o) { o.sigmas = {1, 0}; }), HasSubstr("sigma 0"));
    EXPECT_THAT(with([](auto& o) { o.sigmas = {nan}; }), HasSubstr("sigma nan"));
    EXPECT_THAT(with([](auto& o) { o.height = o.width = 4096, o.orientations = 16; }),
                HasSubstr("4096x4096 pixels with 32 channels"));
    EXPECT_THAT(with([](auto& o) { o.output_scale = -1; }), HasSubstr("scale -1"));
}

}  // namespace
}  // namespace reef::apps
