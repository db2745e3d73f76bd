#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command_line.h"
#include "demo/run.h"
#include "pictures/image.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "support/temporary_folder.h"

namespace reef::tool {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
    int exit = 0;
    std::string out;
    std::string err;
};

Outcome reef(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "reef");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.exit = run_command(static_cast<int>(arguments.size()), arguments.data());
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
}

Image read_picture(const std::string& path) {
    const auto file = read_file(path);
    EXPECT_TRUE(file) << file.error().message();
    auto image = decode_png(file->view());
    EXPECT_TRUE(image) << image.error().message();
    return std::move(image).value();
}

TEST(Demo, WritesThePictureAndBothModels) {
    const test::TemporaryFolder folder;
    const std::string out = folder.file("new/demo");
    const Outcome outcome = reef({"demo", "--out", out.c_str()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, HasSubstr("approaching"));
    EXPECT_THAT(outcome.out, HasSubstr("steady"));
    EXPECT_THAT(outcome.out, HasSubstr("inspect " + out + "/looming_64x64.tflite"));
    EXPECT_THAT(outcome.out, HasSubstr("on simulated chips"));

    const Image strip = read_picture(out + "/strip.png");
    EXPECT_GT(strip.width, 1000);
    EXPECT_GT(strip.height, 1000);
    const Image frame = read_picture(out + "/frame.png");
    EXPECT_EQ(frame.width, 64);
    EXPECT_EQ(frame.height, 64);
    const auto models = demo_models();
    ASSERT_TRUE(models) << models.error().message();
    const auto looming = model::load_tflite(out + "/looming_64x64.tflite");
    ASSERT_TRUE(looming) << looming.error().message();
    EXPECT_EQ(*looming, models->looming);
    const auto gabor = model::load_tflite(out + "/gabor_64x64.tflite");
    ASSERT_TRUE(gabor) << gabor.error().message();
    EXPECT_EQ(*gabor, models->gabor);
}

TEST(Demo, SeesTheApproachAndTheTimeToContact) {
    const auto models = demo_models();
    ASSERT_TRUE(models) << models.error().message();
    const auto run = run_demo(*models, 32, "cpu");
    ASSERT_TRUE(run) << run.error().message();
    ASSERT_EQ(run->frames.size(), 32U);
    for (const DemoFrame& frame : run->frames) {
        if (frame.index < run->still_frames) {
            EXPECT_EQ(frame.estimate.motion, apps::Motion::steady) << "frame " << frame.index;
        }
        if (frame.index >= run->still_frames + static_cast<int>(run->window)) {
            ASSERT_EQ(frame.estimate.motion, apps::Motion::approaching) << "frame " << frame.index;
            EXPECT_NEAR(*frame.estimate.time_to_contact / *frame.true_time, 1, 0.35)
                << "frame " << frame.index;
        }
    }
    EXPECT_LT(run->frames.front().tau, 1.2);
    EXPECT_GT(run->frames.back().tau, 4);
    ASSERT_TRUE(run->mean_relative_error);
    EXPECT_LT(*run->mean_relative_error, 0.15);
}

TEST(Demo, IsTheSameEveryTime) {
    const test::TemporaryFolder folder;
    const Outcome first = reef({"demo", "--frames", "16", "--out", folder.file("a").c_str()});
    const Outcome second = reef({"demo", "--frames", "16", "--out", folder.file("b").c_str()});
    ASSERT_EQ(first.exit, 0) << first.err;
    ASSERT_EQ(second.exit, 0) << second.err;
    for (const char* name : {"strip.png", "looming_64x64.tflite", "gabor_64x64.tflite"}) {
        const auto a = read_file(folder.file("a") + "/" + name);
        const auto b = read_file(folder.file("b") + "/" + name);
        ASSERT_TRUE(a && b) << name;
        EXPECT_TRUE(std::ranges::equal(a->view(), b->view())) << name;
    }
}

TEST(Demo, PrintsJson) {
    const test::TemporaryFolder folder;
    const std::string out = folder.file("demo");
    const Outcome outcome = reef({"demo", "--json", "--frames", "20", "--out", out.c_str()});
    ASSERT_EQ(outcome.exit, 0) << outcome.err;
    const auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(document.at("verb"), "demo");
    EXPECT_EQ(document.at("device"), "cpu");
    EXPECT_EQ(document.at("still_frames"), 4);
    ASSERT_EQ(document.at("frames").size(), 20U);
    const auto& last = document.at("frames").back();
    EXPECT_EQ(last.at("frame"), 19);
    EXPECT_EQ(last.at("zones").size(), 9U);
    EXPECT_EQ(last.at("verdict"), "approaching");
    EXPECT_GT(last.at("tau"), 4);
    EXPECT_GT(last.at("time_to_contact_s"), 0);
    EXPECT_NEAR(last.at("true_time_to_contact_s").get<double>() *
                    document.at("speed_m_per_s").get<double>(),
                last.at("distance_m").get<double>(), 1e-9);
    EXPECT_TRUE(document.at("frames").front().at("true_time_to_contact_s").is_null());
    // Two networks on two chips: a byte is one apart at most, and what is seen is the same.
    ASSERT_EQ(document.at("chips").size(), 4U);
    for (const auto& one : document.at("chips")) {
        EXPECT_GT(one.at("on_chip"), 0) << one;
        EXPECT_LE(one.at("on_chip"), one.at("operators")) << one;
        EXPECT_GT(one.at("bytes"), 0);
        EXPECT_LE(one.at("most_apart"), 1) << one;
        EXPECT_GE(one.at("layers"), 2) << one;
        EXPECT_EQ(one.at("same_layers"), one.at("layers")) << one;
        EXPECT_EQ(one.at("same_verdicts"), 20) << one;
    }
    ASSERT_EQ(document.at("files").size(), 8U);
    for (const auto& file : document.at("files")) {
        EXPECT_TRUE(std::filesystem::exists(file.get<std::string>())) << file;
    }
}

TEST(Demo, RefusesAFolderThatCannotBe) {
    const test::TemporaryFolder folder;
    const std::string file = folder.file("file");
    std::ofstream(file) << "not a folder";
    for (const std::string& out : {file, file + "/below"}) {
        const Outcome outcome = reef({"demo", "--frames", "16", "--out", out.c_str()});
        EXPECT_EQ(outcome.exit, 1);
        EXPECT_EQ(outcome.out, "");
        EXPECT_THAT(outcome.err, StartsWith("reef demo: " + out));
        EXPECT_THAT(outcome.err, HasSubstr("nothing was computed yet"));
        EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Demo, LeavesNothingWhenAFileCannotBeWritten) {
    const test::TemporaryFolder folder;
    // A folder stands where the last file belongs: the rename over it fails.
    const std::string out = folder.file("demo");
    std::filesystem::create_directories(out + "/gabor_64x64.tflite/occupied");
    const Outcome outcome = reef({"demo", "--frames", "16", "--out", out.c_str()});
    EXPECT_EQ(outcome.exit, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 1);
}

TEST(Demo, RefusesLengthsItDoesNotRender) {
    const test::TemporaryFolder folder;
    const std::string out = folder.file("demo");
    for (const char* frames : {"15", "501", "-1", "many"}) {
        const Outcome outcome = reef({"demo", "--frames", frames, "--out", out.c_str()});
        EXPECT_EQ(outcome.exit, 2) << frames;
        EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
        EXPECT_FALSE(std::filesystem::exists(out));
    }
}

}  // namespace
}  // namespace reef::tool
