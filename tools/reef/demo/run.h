// The demo's run: every picture of the scene through both networks.
#pragma once

#include <string>

#include "demo/picture.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::tool {

struct DemoModels {
    model::Model looming;
    model::Model gabor;
};

/// Both networks for the demo's camera, with the default scales.
[[nodiscard]] Result<DemoModels> demo_models();

/// `frames` from ApproachScene::fewest_frames to most_frames; others are refused (bad_argument).
[[nodiscard]] Result<DemoRun> run_demo(const DemoModels& models, int frames,
                                       const std::string& device);

}  // namespace reef::tool
