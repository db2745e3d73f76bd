// LiteRT's benchmark_model by a script that prints what the program prints.
#include "peers/litert_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "peers/known_shapes.h"
#include "reef/model/tflite.h"
#include "support/temporary_folder.h"

namespace reef::peers {
namespace {

using testing::HasSubstr;

constexpr const char* log_of_program = R"(INFO: STARTING!
INFO: Log parameter values verbosely: [0]
INFO: Min num runs: [3]
INFO: Num threads: [1]
INFO: Min warmup runs: [3]
INFO: Graph: [network.tflite]
INFO: Loaded model network.tflite
INFO: Created TensorFlow Lite XNNPACK delegate for CPU.
INFO: Initialized session in 4.312ms.
INFO: Running benchmark for at least 3 iterations and at least 0.1 seconds but terminate if exceeding 150 seconds.
INFO: count=9 first=16190 curr=12148 min=11068 max=16190 avg=12250.5 std=635

INFO: Running benchmark for at least 3 iterations and at least 0 seconds but terminate if exceeding 150 seconds.
INFO: count=3 first=12140 curr=12146 min=12073 max=12446 avg=12157.3 std=64

INFO: Inference timings in us: Init: 4312, First inference: 16190, Warmup (avg): 12250.5, Inference (avg): 12157.3
INFO: Note: as the benchmark tool itself affects memory footprint, the following is only APPROXIMATE.
)";

/// A benchmark_model that prints a text and ends with a code.
class LitertPeerTest : public testing::Test {
  protected:
    void install(const std::string& text, int code = 0) {
        std::ofstream(folder_.file("log")) << text;
        std::ofstream(program_)
            << "#!/bin/sh\necho \"$@\" > " << folder_.file("arguments")
            << "\nfor a in \"$@\"; do case $a in --graph=*) cp \"${a#--graph=}\" "
            << folder_.file("network") << ";; esac; done\ncat " << folder_.file("log")
            << " >&2\nexit " << code << "\n";
        std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
        ::setenv(variable, program_.c_str(), 1);
    }
    Result<double> turn() {
        const auto model = network_of_shape("mobilenet_v2:int8");
        if (!model) return std::unexpected(model.error());
        return REEF_TRY(LitertPeer::create(*model, 2)).turn(3);
    }
    std::string arguments() {
        std::string line;
        std::ifstream file(folder_.file("arguments"));
        std::getline(file, line);
        return line;
    }
    void TearDown() override {
        ::unsetenv(variable);
        ::unsetenv("REEF_SIMD");
    }

    static constexpr const char* variable = "REEF_LITERT_BENCHMARK";
    test::TemporaryFolder folder_;
    std::string program_ = folder_.file("benchmark_model");
};

TEST_F(LitertPeerTest, TakesTheLeastOfTheMeasuredRuns) {
    install(log_of_program);
    EXPECT_EQ(why_no_litert(), "");
    const auto time = turn();
    ASSERT_TRUE(time) << time.error().message();
    EXPECT_DOUBLE_EQ(*time, 12.073);
    EXPECT_THAT(arguments(), HasSubstr("--num_threads=2"));
    EXPECT_THAT(arguments(), HasSubstr("--num_runs=3"));
}

TEST_F(LitertPeerTest, GetsTheNetworkAsAFile) {
    install(log_of_program);
    ASSERT_TRUE(turn());
    const auto given = model::load_tflite(folder_.file("network"));
    ASSERT_TRUE(given) << given.error().message();
    EXPECT_EQ(*given, *network_of_shape("mobilenet_v2:int8"));
}

TEST_F(LitertPeerTest, FailsAsItsProgramDoes) {
    install("INFO: STARTING!\nERROR: Failed to load model network.tflite\n", 1);
    const auto time = turn();
    ASSERT_FALSE(time);
    EXPECT_THAT(time.error().message(), HasSubstr("Failed to load model"));
}

TEST_F(LitertPeerTest, DoesNotStartWithoutItsProgram) {
    install(log_of_program);
    std::filesystem::remove(program_);
    const auto time = turn();
    ASSERT_FALSE(time);
    EXPECT_THAT(time.error().message(), HasSubstr("does not start"));
}

TEST_F(LitertPeerTest, SaysWhyItIsLeftOut) {
    ::setenv(variable, "", 1);
    EXPECT_THAT(why_no_litert(), HasSubstr("REEF_LITERT_BENCHMARK"));
    install(log_of_program);
    ::setenv("REEF_SIMD", "AVX2", 1);
    EXPECT_THAT(why_no_litert(), HasSubstr("REEF_SIMD"));
}

TEST(LitertLog, OfOneRunIsItsTime) {
    EXPECT_DOUBLE_EQ(*least_microseconds("INFO: count=1 curr=120\n"), 120);
    EXPECT_DOUBLE_EQ(*least_microseconds("INFO: count=3 curr=120(all same)\n"), 120);
}

TEST(LitertLog, WithoutATimeIsRefused) {
    for (const char* log : {"", "INFO: STARTING!\n", "INFO: count=0\n",
                            "INFO: count=3 first=1 curr=2 min=-nan max=3 avg=2 std=1\n",
                            "INFO: count=3 first=1 curr=2 min=0 max=3 avg=2 std=1\n",
                            "INFO: count=3 first=1 curr=2 min= max=3", "count="})
        EXPECT_FALSE(least_microseconds(log)) << log;
}

}  // namespace
}  // namespace reef::peers
