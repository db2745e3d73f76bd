// reef run of compiled models on the simulated Edge TPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SimulatedRunTest : public CommandTest {
  protected:
    /// Bytes of that shape, none like its neighbours.
    [[nodiscard]] std::string input(const std::string& shape, std::size_t bytes) const {
        std::string data(bytes, '\0');
        for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(37 * i + i / 251);
        return fmt::format("{}xu8=@{}", shape, write("input.raw", data));
    }
    static std::vector<std::string> strict(const std::filesystem::path& model,
                                           const std::string& input) {
        return {"run", model, "--device", "edgetpu:sim", "--input", input, "--strict"};
    }
};

TEST_F(SimulatedRunTest, StrictRunOfAProgramWithoutFindings) {
    REEF_SHARED_OR_SKIP(shared);
    auto arguments =
        strict(shared / "data/edgetpu/templates/dense_256_edgetpu.tflite", input("1x256", 256));
    EXPECT_THAT(expect_ok(arguments), HasSubstr("strict run: 0 findings\n"));
    arguments.emplace_back("--json");
    const auto json = nlohmann::json::parse(expect_ok(arguments));
    EXPECT_EQ(json["findings"], nlohmann::json::array());
    arguments.erase(std::ranges::find(arguments, "--strict"));
    EXPECT_FALSE(nlohmann::json::parse(expect_ok(arguments)).contains("findings"));
}

// One tile of sixteen reads the parameters that all of them receive.
TEST_F(SimulatedRunTest, StrictRunNamesWhatAProgramDoes) {
    REEF_SHARED_OR_SKIP(shared);
    auto arguments = strict(shared / "data/edgetpu/templates/bright_64x64_edgetpu.tflite",
                            input("1x64x64x1", 64 * 64));
    const auto text = reef_command(arguments);
    EXPECT_EQ(text.exit_code, 1) << text.err;
    EXPECT_THAT(text.out, HasSubstr("strict run: "));
    EXPECT_THAT(text.out, Not(HasSubstr("strict run: 0")));
    arguments.emplace_back("--json");
    const auto result = reef_command(arguments);
    EXPECT_EQ(result.exit_code, 1);
    const auto findings = nlohmann::json::parse(result.out)["findings"];
    ASSERT_FALSE(findings.empty());
    std::size_t never_read = 0;
    for (const auto& finding : findings) {
        EXPECT_EQ(finding["memory"], "wide memory");
        never_read += finding["kind"] == "parameter row that nothing reads" ? 1 : 0;
        EXPECT_THAT(text.out, HasSubstr(finding["text"].get<std::string>()));
    }
    EXPECT_GT(never_read, 0);
}

TEST_F(SimulatedRunTest, SaysHowOftenParametersWereLoaded) {
    REEF_SHARED_OR_SKIP(shared);
    const std::vector<std::string> arguments = {
        "run",      shared / "data/edgetpu/templates/dense_256_edgetpu.tflite",
        "--device", "edgetpu:sim",
        "--input",  input("1x256", 256),
        "--runs",   "3"};
    EXPECT_THAT(expect_ok(arguments),
                HasSubstr("edgetpu:sim: parameters loaded 1 time, evicted 0 times; 0 restarts "
                          "after a fault\n"));
    auto bench = arguments;
    bench[0] = "bench";
    bench.insert(bench.end(), {"--warmup", "2", "--json"});
    const auto json = nlohmann::json::parse(expect_ok(bench));
    EXPECT_EQ(json["chip"]["parameter_loads"], 1);
    EXPECT_EQ(json["chip"]["evictions"], 0);
    EXPECT_EQ(json["chip"]["recoveries"], 0);
    EXPECT_GE(json["chip"]["runs"], 5);
}

TEST_F(SimulatedRunTest, WithoutAStickTheExitCodeIsThree) {
    REEF_SHARED_OR_SKIP(shared);
    expect_error({"run", shared / "data/edgetpu/templates/dense_256_edgetpu.tflite", "--device",
                  "edgetpu:usb:99-9", "--input", input("1x256", 256)},
                 3, "reef doctor");
}

TEST_F(SimulatedRunTest, OnlyTheSimulatorHasStrictRuns) {
    const std::string picture =
        write_array("picture.npy", byte_array({1, 2, 2, 3}, std::vector<std::uint8_t>(12)));
    expect_error({"run", picture_model, "--input", picture, "--strict"}, 2,
                 "device cpu has no strict runs");
}

}  // namespace
}  // namespace reef::tool
