// The demo's picture: what the camera saw, what both networks answered, and what follows from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/apps/robotics.h"
#include "reef/drawing/canvas.h"

namespace reef::tool {

struct DemoFrame {
    int index = 0;
    double time = 0;                  ///< seconds
    double distance = 0;              ///< metres
    std::optional<double> true_time;  ///< to contact, seconds
    double tau = 0;
    apps::ApproachEstimator::Estimate estimate;
    std::array<std::uint8_t, apps::looming_zones> zones{};
    std::vector<std::uint8_t> picture;   ///< side x side
    std::vector<std::uint8_t> features;  ///< side x side x channels
};

struct DemoRun {
    int side = 64;
    int still_frames = 0;
    double speed = 0;       ///< metres per second
    double ball_width = 0;  ///< metres
    double frame_time = 0;  ///< seconds
    std::string device;
    std::size_t window = 0;  ///< frames that the estimate looks at
    /// Mean of |estimate / truth - 1| over the frames whose window saw only the moving ball.
    std::optional<double> mean_relative_error;
    apps::GaborOptions gabor;
    std::vector<DemoFrame> frames;  ///< at least two
};

[[nodiscard]] drawing::Canvas draw_demo(const DemoRun& run);

}  // namespace reef::tool
