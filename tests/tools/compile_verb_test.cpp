// reef compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "edgetpu/compiler/random_network.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompileVerbTest : public CommandTest {
  protected:
    std::string plain = write("net.tflite", model::write_tflite(test::random_network(7)).value());
    std::string compiled = file("net_edgetpu.tflite");
};

TEST_F(CompileVerbTest, CompiledModelsRunAndKeepTheRules) {
    const auto text = expect_ok({"compile", plain, "--target", "edgetpu", "-o", compiled});
    EXPECT_THAT(text, AllOf(HasSubstr("Mapped to the chip"), HasSubstr("Verified: 4 runs"),
                            HasSubstr("0 findings"), HasSubstr("net_edgetpu.tflite")));
    EXPECT_THAT(expect_ok({"disasm", compiled, "--check"}), HasSubstr("all rules kept"));
    EXPECT_THAT(expect_ok({"bench", compiled, "--device", "edgetpu:sim", "--runs", "1"}),
                HasSubstr("edgetpu:sim"));
    EXPECT_THAT(expect_ok({"inspect", compiled, "--all"}), HasSubstr("PARAMETER_CACHING"));
}

TEST_F(CompileVerbTest, PrintsJson) {
    const auto document = nlohmann::json::parse(
        expect_ok({"compile", plain, "--json", "-o", compiled, "--no-verify"}));
    EXPECT_EQ(document["schema_version"], 1);
    EXPECT_EQ(document["target"], "edgetpu");
    EXPECT_FALSE(document.contains("verification"));
    ASSERT_FALSE(document["operators"].empty());
    for (const auto& op : document["operators"])
        EXPECT_EQ(op.contains("reason"), !op["on_chip"].get<bool>());
    EXPECT_GT(document["programs"][0]["instruction_bytes"], 0);
    const auto verified =
        nlohmann::json::parse(expect_ok({"compile", plain, "--json", "--verify"}));
    EXPECT_EQ(verified["verification"]["passed"], true);
    EXPECT_EQ(verified["verification"]["differing"], 0);
}

TEST_F(CompileVerbTest, PrintsWhatAPassLeaves) {
    EXPECT_THAT(expect_ok({"compile", plain, "--print-after", "legalise"}), StartsWith("0 "));
    EXPECT_THAT(expect_ok({"compile", plain, "--print-after", "emit"}), HasSubstr("halt last=1"));
}

TEST_F(CompileVerbTest, RefusesByName) {
    expect_error({"compile", plain, "--target", "toaster", "-o", compiled}, 2,
                 "nothing compiles for 'toaster' (targets are edgetpu)");
    expect_error({"compile", plain, "--print-after", "sleep"}, 2, "no pass 'sleep'");
    expect_error({"compile", plain, "-o", plain}, 2, "net.tflite");
    expect_ok({"compile", plain, "-o", compiled, "--no-verify"});
    expect_error({"compile", compiled, "-o", file("again.tflite")}, 2, "is compiled already");
}

TEST_F(CompileVerbTest, CommandOfTheVendorsFormWritesModelAndLog) {
    const std::string folder = std::filesystem::path(plain).parent_path();
    const auto done = test::run_process({REEF_EDGETPU_COMPILER, "-s", "-o", folder, plain});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, AllOf(HasSubstr("Output model: net_edgetpu.tflite"),
                                HasSubstr("Mapped to Edge TPU")));
    EXPECT_TRUE(exists("net_edgetpu.log"));
    EXPECT_THAT(expect_ok({"disasm", compiled, "--check"}), HasSubstr("all rules kept"));
    const auto refused = test::run_process({REEF_EDGETPU_COMPILER, "-n", "2", plain});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("not divided over several chips"));
}

}  // namespace
}  // namespace reef::tool
