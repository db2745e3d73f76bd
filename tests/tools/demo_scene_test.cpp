#include <gtest/gtest.h>

#include <cmath>

#include "demo/scene.h"

namespace reef::tool {
namespace {

TEST(ApproachScene, MovesAsItSays) {
    for (const int frames : {ApproachScene::fewest_frames, 32, 100}) {
        const ApproachScene scene(frames);
        EXPECT_GE(scene.still_frames(), 3);
        EXPECT_DOUBLE_EQ(scene.distance(0), ApproachScene::first_distance);
        EXPECT_NEAR(scene.distance(frames - 1), ApproachScene::last_distance, 1e-9);
        for (int i = 0; i < frames; ++i) {
            const auto left = scene.time_to_contact(i);
            ASSERT_EQ(left.has_value(), i >= scene.still_frames());
            if (!left) continue;
            EXPECT_NEAR(*left * scene.speed(), scene.distance(i), 1e-9);
            if (i > scene.still_frames()) {
                EXPECT_NEAR(*scene.time_to_contact(i - 1) - *left, ApproachScene::frame_time, 1e-9);
            }
        }
    }
}

TEST(ApproachScene, IsTheSameEveryTimeAndOnlyTheBallMoves) {
    const ApproachScene scene(32);
    const ApproachScene again(32);
    EXPECT_EQ(scene.picture(31), again.picture(31));
    const auto first = scene.picture(0);
    const auto last = scene.picture(31);
    int changed_outside = 0;
    int changed_inside = 0;
    for (int y = 0; y < ApproachScene::side; ++y) {
        for (int x = 0; x < ApproachScene::side; ++x) {
            const auto i = static_cast<std::size_t>(y * ApproachScene::side + x);
            const bool changed = std::abs(first[i] - last[i]) > 15;  // above the noise
            const bool inside = std::hypot(x - 31.5, y - 31.5) < 11;
            (inside ? changed_inside : changed_outside) += changed;
        }
    }
    EXPECT_EQ(changed_outside, 0);
    EXPECT_GT(changed_inside, 200);
}

}  // namespace
}  // namespace reef::tool
