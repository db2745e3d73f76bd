#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;

using BenchTest = CommandTest;

TEST_F(BenchTest, ThroughputMemoryAndCsv) {
    const auto json =
        nlohmann::json::parse(expect_ok({"bench", two_input_model, "--runs", "5", "--json"}));
    EXPECT_NEAR(json["inferences_per_s"].get<double>() * json["latency"]["mean_s"].get<double>(), 1,
                1e-9);
    EXPECT_GT(json["peak_memory_bytes"], 1 << 20);
    const std::string csv = expect_ok({"bench", two_input_model, "--runs", "5", "--csv"});
    EXPECT_THAT(csv, HasSubstr("model,device,kernels,arithmetic,threads,runs,min_s,"));
    EXPECT_EQ(std::ranges::count(csv, '\n'), 2);
    const auto titles = csv.substr(0, csv.find('\n'));
    EXPECT_EQ(std::ranges::count(titles, ',') * 2, std::ranges::count(csv, ','));
    EXPECT_THAT(expect_ok({"bench", two_input_model, "--runs", "5"}),
                HasSubstr("inferences/s; peak memory"));
    expect_error({"bench", two_input_model, "--csv", "--json"}, 2, "--csv");
}

TEST_F(BenchTest, OptionsOfOtherToolsAreRefusedWithOurs) {
    expect_error({"bench", "--graph=" + two_input_model, "--use_gpu=true"}, 2,
                 "--use_gpu: use --device DEVICE");
    expect_error({"bench", two_input_model, "--max_secs=3"}, 2, "use --runs N or --seconds S");
    expect_error({"bench", two_input_model, "--use_xnnpack=false"}, 2, "--kernels");
    expect_error({"bench", two_input_model, "--max_delegated_partitions=2"}, 2, "--device");
    expect_error({"bench", two_input_model, "--gpu_backend=cl"}, 2, "use --device DEVICE");
    expect_error({"bench", two_input_model, "--output_filepath=o"}, 2, "reef run MODEL --output");
    expect_error({"run", two_input_model, "--use_gpu=true"}, 2, "--use_gpu");
}

TEST_F(BenchTest, TextHasThePercentilesAndTheProfile) {
    const std::string text = expect_ok({"bench", two_input_model, "--runs", "7", "--warmup", "0"});
    for (const char* word : {"min", "mean", "median", "p90", "p95", "p99", "7 runs", "0 warm-up",
                             "time by type", "slowest operators", "ADD", "RELU"}) {
        EXPECT_THAT(text, HasSubstr(word));
    }
}

TEST_F(BenchTest, JsonAddsUp) {
    const auto json = nlohmann::json::parse(
        expect_ok({"bench", two_input_model, "--seconds", "0.01", "--json", "--threads", "2"}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["threads"], 2);
    EXPECT_THAT(json["threads_taken"].get<int>(), testing::AnyOf(1, 2));
    const auto& latency = json["latency"];
    EXPECT_GT(latency["runs"], 0);
    EXPECT_LE(latency["min_s"], latency["median_s"]);
    EXPECT_LE(latency["median_s"], latency["p90_s"]);
    EXPECT_LE(latency["p90_s"], latency["p95_s"]);
    EXPECT_LE(latency["p95_s"], latency["p99_s"]);
    EXPECT_LE(latency["p99_s"], latency["max_s"]);
    double share = 0;
    for (const auto& op : json["profile"]["operators"]) share += op["share"].get<double>();
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(json["profile"]["operators"].size(), 2U);
}

TEST_F(BenchTest, TakesTheNamesOfTheUsualTool) {
    const auto json =
        nlohmann::json::parse(expect_ok({"bench", "--graph=" + two_input_model, "--num_runs=5",
                                         "--num_threads=1", "--warmup_runs=2", "--json"}));
    EXPECT_EQ(json["latency"]["runs"], 5);
    EXPECT_EQ(json["warmup_runs"], 2);
    // Both are least values there.
    const auto runs_of = [&](const std::string& runs, const std::string& seconds) {
        return nlohmann::json::parse(expect_ok(
            {"bench", two_input_model, "--num_runs=" + runs, "--min_secs=" + seconds, "--json"}));
    };
    EXPECT_GE(runs_of("3000", "0.001")["latency"]["runs"], 3000);
    EXPECT_GT(runs_of("2", "0.02")["latency"]["runs"], 2);
}

TEST_F(BenchTest, TraceIsInChromesFormat) {
    expect_ok({"bench", two_input_model, "--runs", "3", "--trace", file("trace.json")});
    const SharedBytes trace = read_file(file("trace.json")).value();
    const auto json = nlohmann::json::parse(as_text(trace.view()));
    std::size_t complete = 0;
    double last_end = 0;
    for (const auto& event : json["traceEvents"]) {
        ASSERT_TRUE(event["name"].is_string());
        ASSERT_TRUE(event["pid"].is_number_integer());
        ASSERT_TRUE(event["tid"].is_number_integer());
        if (event["ph"] == "M") {
            EXPECT_TRUE(event["args"]["name"].is_string());
            continue;
        }
        ASSERT_EQ(event["ph"], "X");
        ++complete;
        EXPECT_GE(event["dur"], 0);
        // Operators of one lane follow each other.
        EXPECT_GE(event["ts"].get<double>(), last_end - 1e-3);
        last_end = event["ts"].get<double>() + event["dur"].get<double>();
        EXPECT_TRUE(event["args"]["kernel"].is_string());
    }
    EXPECT_EQ(complete, 3U * 2U);
}

TEST_F(BenchTest, GivenInputs) {
    const std::string input = write_array("in.npy", float_array({1, 4}, {1, 2, 3, 4}));
    const std::string text = expect_ok(
        {"bench", two_input_model, "--runs", "2", "--input", input, "--input", "right=" + input});
    EXPECT_THAT(text, HasSubstr("given inputs"));
}

TEST_F(BenchTest, BadInput) {
    expect_error({"bench"}, 2, "MODEL");
    expect_error({"bench", two_input_model, "--runs", "0"}, 2, "--runs");
    expect_error({"bench", two_input_model, "--runs", "many"}, 2, "--runs");
    expect_error({"bench", two_input_model, "--seconds", "0"}, 2, "--seconds");
    expect_error({"bench", two_input_model, "--seconds", "nan"}, 2, "nan is not 0.001 to 86400");
    expect_error({"bench", two_input_model, "--device", "abacus"}, 2, "'abacus'");
    expect_error({"bench", two_input_model, "--device", "edgetpu:usb"}, 1, "compile it");
    expect_error({"bench", two_input_model, "--device", "edgetpu:sim"}, 1, "compile it");
    expect_error({"bench", file("none.tflite")}, 1, "none.tflite");
    expect_error({"bench", write("empty.tflite", "")}, 1, "empty.tflite");
    expect_error({"bench", two_input_model, "--input", two_input_model}, 1, "not a file that reef");
    expect_error({"bench", two_input_model, "--runs", "1", "--trace", file("none/trace.json")}, 1,
                 "none");
}

}  // namespace
}  // namespace reef::tool
