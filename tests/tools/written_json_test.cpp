// --json of the verbs that write files, on a model of Reef's own compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/random_network.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using nlohmann::json;

class WrittenJson : public CommandTest {
  protected:
    WrittenJson() { expect_ok({"compile", plain, "--target", "edgetpu", "-o", compiled}); }

    /// What it says of a file that it wrote.
    json document(std::vector<std::string> arguments, const std::string& verb,
                  const std::string& out) {
        const bool has_parts = arguments[0] == "weights";
        arguments.insert(arguments.end(), {"-o", out, "--json"});
        const json told = json::parse(expect_ok(arguments));
        EXPECT_EQ(told["schema_version"], 1);
        EXPECT_EQ(told["verb"], verb);
        EXPECT_EQ(told["output"], out);
        EXPECT_TRUE(exists(std::filesystem::path(out).filename().string()));
        if (has_parts || arguments[0] != "record") {
            arguments[arguments.size() - 2] = "-";
            expect_error(arguments, 2, "standard output cannot hold the file and JSON");
        }
        return told;
    }

    std::string plain = write("net.tflite", model::write_tflite(test::random_network(7)).value());
    std::string compiled = file("net_edgetpu.tflite");
};

TEST_F(WrittenJson, Asm) {
    const std::string stream = file("net.coral");
    const auto told = document({"asm", write("net.s", "halt\nhalt last=1\n"), "--chip", "edgetpu"},
                               "asm", stream);
    EXPECT_EQ(told["chip"], "edgetpu");
    EXPECT_EQ(told["words"], 2);
    EXPECT_EQ(told["bytes"], std::filesystem::file_size(stream));
}

TEST_F(WrittenJson, Weights) {
    const std::string arrays = file("net.npz");
    const auto got = document({"weights", "get", compiled, "--like", plain}, "weights get", arrays);
    ASSERT_FALSE(got["arrays"].empty());
    EXPECT_TRUE(got["arrays"][0]["shape"].is_array());
    const auto set = document({"weights", "set", compiled, "--like", plain, "--from", arrays},
                              "weights set", file("again_edgetpu.tflite"));
    EXPECT_EQ(set["arrays"], got["arrays"]);
}

TEST_F(WrittenJson, Retarget) {
    const std::string out = file("same_edgetpu.tflite");
    const auto told =
        document({"retarget", compiled, "--to", plain, "--like", plain}, "retarget", out);
    EXPECT_EQ(told["target"], plain);
    EXPECT_EQ(told["changed_parameter_bytes"], 0);
    EXPECT_EQ(told["bytes"], std::filesystem::file_size(out));
}

TEST_F(WrittenJson, Record) {
    const std::string out = file("traffic.log");
    const auto told = document({"record", compiled, "--device", "edgetpu:null"}, "record", out);
    EXPECT_EQ(told["device"], "edgetpu:null");
    EXPECT_GT(told["items"], 0);
    EXPECT_EQ(told["payload_bytes"], std::filesystem::file_size(out + ".bin"));
}

/// Whose it is shows in the recording: --chip is for those that several chips could read.
TEST_F(WrittenJson, RecordingsOfEveryChipAreRead) {
    const std::string on_npu = file("net_rk3588.tflite"), log = file("npu.log");
    expect_ok({"compile", plain, "--target", "rk3588", "-o", on_npu});
    expect_ok({"record", on_npu, "--device", "rk3588:rknpu?kernel=simulated", "-o", log});
    const auto text = expect_ok({"replay", log});
    EXPECT_EQ(text, expect_ok({"replay", log, "--chip", "rk3588"}));
    EXPECT_NE(text, "");
    expect_ok({"replay", log, "--against", log});
    expect_ok({"replay", log, "--registers"});
    expect_ok({"replay", log, on_npu});
    expect_error({"replay", log, compiled}, 1, "the model is compiled for 'edgetpu'");
    std::filesystem::resize_file(log, std::filesystem::file_size(log) - 3);
    expect_error({"replay", log}, 1, "npu.log: no chip's recorder reads it (");
    expect_error({"replay", log}, 1, "rk3588: line ");
    expect_error({"replay", log, "--chip", "rk3588"}, 1, "npu.log: line ");
}

TEST_F(WrittenJson, ChecksSayWhetherTheyPassed) {
    for (const std::vector<std::string>& line :
         {std::vector<std::string>{"check", compiled, "--json"},
          {"check", plain, "--target", "edgetpu", "--json"}})
        EXPECT_EQ(json::parse(expect_ok(line))["passed"], true);
    EXPECT_EQ(json::parse(expect_ok({"diff", compiled, compiled, "--json"}))["same"], true);
}

TEST_F(WrittenJson, CompileKeepsStandardOutputForOne) {
    expect_error({"compile", plain, "--target", "edgetpu", "-o", "-", "--json"}, 2,
                 "standard output cannot hold the file and JSON");
}

}  // namespace
}  // namespace reef::tool
