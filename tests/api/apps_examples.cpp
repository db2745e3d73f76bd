// An object approaches: the networks of apps/robotics.h and what their numbers mean.
#include <gtest/gtest.h>

#include "reef/apps/robotics.h"
#include "reef/model/graph.h"

namespace {

TEST(Promised, AnApproachIsTimed) {
    const auto network = reef::apps::looming_model({.height = 32, .width = 32});
    ASSERT_TRUE(network) << network.error().message();
    EXPECT_EQ(network->subgraphs.size(), 1U);
    // Twice as near as half a second ago: half a second is left.
    EXPECT_NEAR(reef::apps::time_to_contact(1, 2, 0.5).value_or(0), 0.5, 1e-9);
    reef::apps::ApproachEstimator estimator;
    reef::apps::ApproachEstimator::Estimate estimate;
    for (const double tau : {1 / 4.0, 1 / 3.0, 1 / 2.0, 1.0}) estimate = estimator.update(tau, 0.1);
    EXPECT_EQ(estimate.motion, reef::apps::Motion::approaching);
}

}  // namespace
