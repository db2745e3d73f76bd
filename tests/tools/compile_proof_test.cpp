// What reef compile says of whether the compiled model is right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/random_network.h"
#include "reef/base/file.h"
#include "reef/base/text.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CompileProofTest : public CommandTest {
  protected:
    std::string plain = write("net.tflite", model::write_tflite(test::random_network(7)).value());
    std::string compiled = file("net_edgetpu.tflite");
};

/// The engines' order must not matter.
TEST_F(CompileProofTest, VerifiesInARandomOrderOfTheEngines) {
    for (const char* seed : {"0", "7"})
        EXPECT_THAT(
            expect_ok({"compile", plain, "--target", "edgetpu", "--random-seed", seed}),
            AllOf(HasSubstr(fmt::format("Verified: 4 runs in a random order (seed {})", seed)),
                  HasSubstr("0 findings")));
    const auto segments =
        nlohmann::json::parse(expect_ok({"compile", plain, "--target", "edgetpu", "--segments", "2",
                                         "--json", "--random-seed", "7"}));
    for (const auto& segment : segments["segments"]) {
        EXPECT_EQ(segment["verification"]["passed"], true);
        EXPECT_EQ(segment["verification"]["random_seed"], 7);
    }
    for (const char* seed : {"-1", "x", "4294967296", "99999999999999999999"})
        expect_error({"compile", plain, "--target", "edgetpu", "--random-seed", seed}, 2,
                     "--random-seed");
    expect_error({"compile", plain, "--target", "edgetpu", "--random-seed", "1", "--no-verify"}, 2,
                 "--no-verify");
}

TEST_F(CompileProofTest, SaysWhyNothingIsVerified) {
    EXPECT_THAT(expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify"}),
                HasSubstr("Not verified: --no-verify was given\n"));
    // No simulated chip of this family watches programs.
    const std::string unwatched = "no simulated rk3588 watches programs";
    EXPECT_THAT(expect_ok({"compile", plain, "--target", "rk3588"}),
                HasSubstr("Not verified: " + unwatched + "\n"));
    const auto document =
        nlohmann::json::parse(expect_ok({"compile", plain, "--target", "rk3588", "--json"}));
    EXPECT_TRUE(document.at("verified").is_null());
    EXPECT_EQ(document["not_verified"], unwatched);
    const auto piped = reef_command({"compile", plain, "--target", "rk3588", "-o", "-"});
    EXPECT_EQ(piped.exit_code, 0);
    expect_ok({"compile", plain, "--target", "rk3588", "-o", compiled});
    EXPECT_EQ(piped.out, as_text(read_file(compiled).value().view()));
    EXPECT_EQ(piped.err, "reef compile: not verified: " + unwatched + "\n");
    const auto segments = nlohmann::json::parse(expect_ok(
        {"compile", plain, "--target", "edgetpu", "--segments", "2", "--json", "--no-verify"}));
    for (const auto& segment : segments["segments"]) EXPECT_TRUE(segment.at("verified").is_null());
}

/// Below 20 million multiply-adds a model is verified unasked.
TEST_F(CompileProofTest, SaysThatALargeModelIsVerifiedWhenAsked) {
    model::Builder b("large");
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto in = b.input("in", ElementType::uint8, {1, 64, 64, 32}, numbers);
    const auto weights =
        b.constant<std::uint8_t>("weights", ElementType::uint8, {32, 3, 3, 32},
                                 std::vector<std::uint8_t>(32 * 9 * 32, 7), numbers);
    const auto out = b.tensor("out", ElementType::uint8, {1, 64, 64, 32}, numbers);
    b.add(model::Op::conv_2d, {in, weights, model::absent_tensor}, {out},
          model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1});
    b.output(out);
    const auto path = write("large.tflite", model::write_tflite(b.finish().value()).value());
    EXPECT_THAT(expect_ok({"compile", path, "--target", "edgetpu"}),
                HasSubstr("Not verified: 37 million multiply-adds take their time: --verify "
                          "verifies them\n"));
}

/// The CPU has no kernel for what the program stands beside: nobody asked for a proof.
TEST_F(CompileProofTest, IsWrittenUnprovenWhereThePlainModelCannotRun) {
    model::Builder b("scales");
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto in = b.input("in", ElementType::uint8, {1, 8, 8, 8}, numbers);
    const auto sum = b.tensor("sum", ElementType::uint8, {1, 8, 8, 8}, numbers);
    const auto out = b.tensor("out", ElementType::uint8, {1, 8, 8, 2}, numbers);
    const auto weights = b.constant<std::uint8_t>("weights", ElementType::uint8, {2, 1, 1, 8},
                                                  std::vector<std::uint8_t>(16, 7),
                                                  model::per_channel({0.01F, 0.02F}, 0));
    b.add(model::Op::add, {in, in}, {sum}, model::AddOptions{});
    b.add(model::Op::conv_2d, {sum, weights, model::absent_tensor}, {out},
          model::Conv2dOptions{.padding = model::Padding::valid, .stride_h = 1, .stride_w = 1});
    b.output(out);
    const auto path = write("scales.tflite", model::write_tflite(b.finish().value()).value());
    const std::vector<std::string> words{"compile", path, "--target", "edgetpu", "-o", compiled};
    EXPECT_THAT(expect_ok(words), HasSubstr("Not verified: "));
    EXPECT_TRUE(exists("net_edgetpu.tflite"));
    auto json = words;
    json.emplace_back("--json");
    const auto document = nlohmann::json::parse(expect_ok(json));
    EXPECT_THAT(document["not_verified"].get<std::string>(), HasSubstr("CONV_2D"));
    EXPECT_TRUE(document.at("verified").is_null());
    EXPECT_FALSE(document.contains("verification"));
    expect_error({"compile", path, "--target", "edgetpu", "-o", file("other.tflite"), "--verify"},
                 1, "CONV_2D");
}

}  // namespace
}  // namespace reef::tool
