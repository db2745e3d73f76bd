#include "demo/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "demo/scene.h"
#include "reef/runtime/session.h"

namespace reef::tool {
namespace {

constexpr std::size_t window = 8;

/// Runs one picture through the network and returns its only output.
Result<Bytes> answer(runtime::Session& session, const std::vector<std::uint8_t>& picture) {
    std::ranges::copy(std::as_bytes(std::span(picture)), session.input(0).begin());
    REEF_CHECK(session.run());
    return session.output(0);
}

void copy_bytes(Bytes from, std::span<std::uint8_t> to) {
    std::ranges::copy(from, std::as_writable_bytes(to).begin());
}

std::optional<double> mean_relative_error(const DemoRun& run) {
    double sum = 0;
    int count = 0;
    for (const DemoFrame& frame : run.frames) {
        const bool only_moving = frame.index >= run.still_frames + static_cast<int>(run.window);
        const auto& estimate = frame.estimate.time_to_contact;
        if (!only_moving || !frame.true_time || !estimate) continue;
        sum += std::abs(*estimate / *frame.true_time - 1);
        ++count;
    }
    if (count == 0) return std::nullopt;
    return sum / count;
}

}  // namespace

Result<DemoModels> demo_models() {
    apps::LoomingOptions looming;
    looming.height = looming.width = ApproachScene::side;
    apps::GaborOptions gabor;
    gabor.height = gabor.width = ApproachScene::side;
    return DemoModels{REEF_TRY(apps::looming_model(looming)), REEF_TRY(apps::gabor_model(gabor))};
}

Result<DemoRun> run_demo(const DemoModels& models, int frames, const std::string& device) {
    if (frames < ApproachScene::fewest_frames || frames > ApproachScene::most_frames) {
        return fail(Cause::bad_argument,
                    fmt::format("{} frames: the demo renders {} to {}", frames,
                                ApproachScene::fewest_frames, ApproachScene::most_frames));
    }
    runtime::SessionOptions options;
    options.devices = {device};
    auto looming = REEF_TRY(runtime::Session::open(models.looming, options));
    auto gabor = REEF_TRY(runtime::Session::open(models.gabor, options));

    const ApproachScene scene(frames);
    DemoRun run;
    run.side = ApproachScene::side;
    run.still_frames = scene.still_frames();
    run.speed = scene.speed();
    run.ball_width = 2 * ApproachScene::ball_radius;
    run.frame_time = ApproachScene::frame_time;
    run.device = device;
    run.window = window;
    apps::ApproachEstimator estimator(window);
    for (int i = 0; i < frames; ++i) {
        DemoFrame frame;
        frame.index = i;
        frame.time = scene.time(i);
        frame.distance = scene.distance(i);
        frame.true_time = scene.time_to_contact(i);
        frame.picture = scene.picture(i);
        copy_bytes(REEF_TRY(answer(looming, frame.picture)), frame.zones);
        const Bytes features = REEF_TRY(answer(gabor, frame.picture));
        frame.features.resize(features.size());
        copy_bytes(features, frame.features);
        frame.tau = apps::tau(frame.zones);
        frame.estimate = estimator.update(frame.tau, ApproachScene::frame_time);
        run.frames.push_back(std::move(frame));
    }
    run.mean_relative_error = mean_relative_error(run);
    return run;
}

}  // namespace reef::tool
