// reef disasm, asm and diff.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "check/program_check.h"
#include "command.h"
#include "edgetpu/package/small_packages.h"
#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "reef/runtime/program_streams.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgramVerbsTest : public CommandTest {
  protected:
    // The smallest stream that keeps all rules, with one multiply-accumulate.
    static std::string text(const std::string& scale) {
        return "start bits=2816\nmac tiles=t0-t3 scale=" + scale +
               "\nhalt\nbundle\nbundle\nbundle\nbundle\nend bits=128\n";
    }
    std::string assembled(const std::string& name, const std::string& source) const {
        const auto out = file(name);
        expect_ok({"asm", write(name + ".s", source), "-o", out});
        return out;
    }
    std::string stream = assembled("a.coral", text("0.5"));
    std::string other = assembled("b.coral", text("0.25"));
};

TEST_F(ProgramVerbsTest, TextGoesBackToTheSameBytes) {
    for (const auto* form : {"--symbolic", "--no-addresses"}) {
        const auto shown = expect_ok({"disasm", stream, form});
        EXPECT_THAT(shown, HasSubstr("mac tiles="));
        const auto again = assembled("again.coral", shown);
        EXPECT_EQ(read_file(again)->view().size(), read_file(stream)->view().size());
        EXPECT_TRUE(*read_file(again) == *read_file(stream));
    }
    EXPECT_THAT(expect_ok({"disasm", stream, "--symbolic"}),
                HasSubstr("0x0001: mac tiles=t0-t3 scale=0.5\n"));
}

/// What reef retarget asks before it writes: no fault of its own making is let out.
TEST_F(ProgramVerbsTest, ARewrittenProgramHasNoFaultThatItHadNotBefore) {
    const auto streams = [](const std::string& path) {
        return runtime::program_streams_of(read_file(path).value()).value();
    };
    const auto right = streams(stream), changed = streams(other),
               broken = streams(assembled("broken.coral", text("1 seq=7"))),
               broken_alike = streams(assembled("alike.coral", text("2 seq=7"))),
               broken_otherwise = streams(assembled("otherwise.coral", text("1 seq=8"))),
               modelled = streams(assembled("modelled.coral", text("1 unknown_1844=1"))),
               unmodelled =
                   streams(assembled("unmodelled.coral", text("1 unknown_1844=1 single=1")));
    EXPECT_TRUE(check_rewritten(right, changed));
    EXPECT_TRUE(check_rewritten(broken, right));
    EXPECT_TRUE(check_rewritten(broken, broken_alike));
    const auto refused = check_rewritten(right, broken);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::unsupported);
    EXPECT_THAT(refused.error().message(),
                HasSubstr("raw word 0x0001: the rewritten program breaks a rule: tile instruction "
                          "has the number 7, 0 is due"));
    EXPECT_THAT(check_rewritten(broken, broken_otherwise).error().message(),
                HasSubstr("the number 8"));
    const auto strange = check_rewritten(modelled, unmodelled);
    ASSERT_FALSE(strange);
    EXPECT_THAT(strange.error().message(), HasSubstr("does not model"));
    EXPECT_FALSE(check_rewritten(right, {}));
}

TEST_F(ProgramVerbsTest, CheckTellsKeptAndBrokenRules) {
    EXPECT_THAT(expect_ok({"disasm", stream, "--check"}), HasSubstr("all rules kept"));
    const auto broken = assembled("broken.coral", text("1 seq=7"));
    const auto result = reef_command({"disasm", broken, "--check"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, HasSubstr("word 0x0001: tile instruction has the number 7, 0 is due"));
    const auto json = reef_command({"disasm", broken, "--check", "--json"});
    EXPECT_EQ(json.exit_code, 1);
    const auto told = nlohmann::json::parse(json.out);
    EXPECT_EQ(told["executables"][0]["faults"][0]["word"], 1);
    EXPECT_EQ(told["passed"], false);
}

TEST_F(ProgramVerbsTest, CheckSaysWhatTheSimulatorDoesNotModel) {
    const auto known = assembled("known.coral", text("1 unknown_1844=1"));
    EXPECT_THAT(expect_ok({"disasm", known, "--check"}), HasSubstr("all rules kept\n"));
    const auto unknown = assembled("unknown.coral", text("1 unknown_1844=1 single=1"));
    EXPECT_THAT(expect_ok({"disasm", unknown, "--check"}),
                AllOf(HasSubstr("all rules kept; the simulator does not model all of it\n"),
                      HasSubstr("word 0x0001: not modelled: ")));
    const auto json = nlohmann::json::parse(expect_ok({"disasm", unknown, "--check", "--json"}));
    EXPECT_EQ(json["executables"][0]["faults"].size(), 0);
    EXPECT_EQ(json["passed"], true);
    EXPECT_EQ(json["executables"][0]["unmodelled"][0]["word"], 1);
}

TEST_F(ProgramVerbsTest, JsonHoldsFields) {
    const auto json = nlohmann::json::parse(expect_ok({"disasm", stream, "--json"}));
    EXPECT_EQ(json["schema_version"], 1);
    const auto& mac = json["executables"][0]["chunks"][0]["instructions"][1];
    EXPECT_EQ(mac["name"], "mac");
    EXPECT_EQ(mac["fields"]["tiles"], 15);
    EXPECT_EQ(mac["fields"]["scale"], 0.5);
}

TEST_F(ProgramVerbsTest, GuessesAreListedWhereTheyAreSet) {
    EXPECT_THAT(expect_ok({"disasm", stream, "--guesses"}), HasSubstr("sets no field"));
    const auto guessing = assembled("guessing.coral", text("1 unknown_1844=1"));
    EXPECT_THAT(expect_ok({"disasm", guessing, "--guesses"}), HasSubstr("unknown_1844"));
    const auto json = nlohmann::json::parse(expect_ok({"disasm", guessing, "--guesses", "--json"}));
    const auto& guess = json["executables"][0]["guesses"][0];
    EXPECT_EQ(guess["instruction"], "mac");
    EXPECT_EQ(guess["field"], "unknown_1844");
    EXPECT_EQ(guess["instructions"], 1);
}

TEST_F(ProgramVerbsTest, DiffNamesFields) {
    EXPECT_THAT(expect_ok({"diff", stream, stream}), HasSubstr("identical"));
    const auto result = reef_command({"diff", stream, other});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, HasSubstr("scale: 0.5 -> 0.25"));
    const auto json = reef_command({"diff", stream, other, "--json"});
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(nlohmann::json::parse(json.out)["same"], false);
    const auto same = nlohmann::json::parse(expect_ok({"diff", stream, stream, "--json"}));
    EXPECT_EQ(same["same"], true);
    const auto change = nlohmann::json::parse(json.out)["streams"][0]["changes"][0];
    EXPECT_EQ(change["fields"][0]["name"], "scale");
    EXPECT_EQ(change["fields"][0]["after"], 0.25);
}

TEST_F(ProgramVerbsTest, DiffComparesParameters) {
    const auto compiled = [&](const std::string& name, std::byte changed) {
        edgetpu::Package package = edgetpu::test::rich_package();
        std::vector<std::byte> parameters(300, std::byte{7});
        parameters[0x20] = parameters[0x21] = changed;
        package.executables[0].parameters = SharedBytes::copy_of(parameters);
        model::Builder builder("compiled");
        const auto in = builder.input("in", ElementType::uint8, {1});
        const auto out = builder.tensor("out", ElementType::uint8, {1});
        const auto op = edgetpu::test::compiled_operator(package);
        builder.add_custom(op.code.custom, {in}, {out}, op.custom_options.view());
        builder.output(out);
        return write(name, model::write_tflite(builder.finish().value()).value());
    };
    const auto a = compiled("a.tflite", std::byte{7});
    EXPECT_THAT(expect_ok({"diff", a, a}), HasSubstr("parameters: identical, 300 bytes\n"));
    const auto b = compiled("b.tflite", std::byte{8});
    const auto result = reef_command({"diff", a, b});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.out, HasSubstr("parameters: 2 of 300 bytes differ, the first at 0x20\n"));
    const auto json = nlohmann::json::parse(reef_command({"diff", a, b, "--json"}).out);
    EXPECT_EQ(json["parameters"][0]["different_bytes"], 2);
    EXPECT_EQ(json["parameters"][0]["first_different"], 0x20);
    EXPECT_EQ(json["parameters"][0]["identical"], false);
}

TEST_F(ProgramVerbsTest, ErrorsSayWhatAndWhere) {
    expect_error({"disasm", two_input_model}, 1, "the model is not compiled");
    const auto picture = write("cat.bin", std::string(40, '\xff'));
    expect_error({"disasm", picture}, 1, "word 0x2: 8 bytes after");
    EXPECT_THAT(expect_ok({"disasm", picture, "--data"}), HasSubstr(".bytes ffffffffffffffff\n"));
    expect_error({"disasm", stream, "--executable", "9"}, 2, "there are 0 raw");
    expect_error({"asm", write("bad.s", "halt\nmac speed=1\n"), "-o", file("bad.coral")}, 1,
                 "line 2: mac: no field 'speed'");
    const auto two = write("two.s", ".stream a\nhalt\n.stream b\nhalt\nhalt\n");
    expect_error({"asm", two, "-o", file("two.coral")}, 2, "the text has 2 streams: a, b");
    expect_error({"asm", two, "-o", file("two.coral"), "--stream", "c"}, 2, "there are a, b");
    expect_ok({"asm", two, "-o", file("two.coral"), "--stream", "b"});
    EXPECT_EQ(read_file(file("two.coral"))->size(), 32u);
}

TEST_F(ProgramVerbsTest, CompiledModelsShowAllExecutables) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model = (shared / "data/edgetpu/templates/dense_256_edgetpu.tflite").string();
    const auto shown = expect_ok({"disasm", model, "--symbolic"});
    EXPECT_THAT(shown, HasSubstr(".stream 0-EXECUTION_ONLY\n"));
    EXPECT_THAT(shown, HasSubstr(".stream 1-PARAMETER_CACHING\n"));
    EXPECT_THAT(shown, HasSubstr("DMA input activations, 256 bytes"));
    EXPECT_THAT(expect_ok({"disasm", model, "--executable", "PARAMETER_CACHING"}),
                Not(HasSubstr(".stream")));
    expect_ok({"asm", write("dense.s", shown), "--stream", "0-EXECUTION_ONLY", "-o",
               file("dense.coral")});
    const auto bytes = read_file(model);
    ASSERT_TRUE(bytes);
    const auto programs = runtime::program_streams_of(*bytes);
    ASSERT_TRUE(programs);
    EXPECT_TRUE(
        std::ranges::equal(read_file(file("dense.coral"))->view(), programs->at(0).chunks.at(0)));
}

// Any change of a compiled file gives programs or an error, never anything else.
TEST(InstructionStreams, BrokenPackagesAreRefused) {
    REEF_SHARED_OR_SKIP(shared);
    const auto file =
        read_file((shared / "data/edgetpu/templates/bright_16x16_edgetpu.tflite").string());
    ASSERT_TRUE(file);
    std::vector<std::byte> bytes(file->view().begin(), file->view().end());
    const auto package = as_text(bytes).find("DWN1");
    ASSERT_NE(package, std::string_view::npos);
    for (std::size_t at = package - 4; at < std::min(package + 2000, bytes.size()); ++at) {
        for (const auto flip : {std::byte{0x80}, std::byte{0xff}, std::byte{0x04}}) {
            auto changed = bytes;
            changed[at] ^= flip;
            const auto programs = runtime::program_streams_of(SharedBytes::copy_of(changed));
            if (programs) continue;
            EXPECT_FALSE(programs.error().what.empty());
        }
    }
    for (std::size_t size = 8; size < bytes.size(); size += 997)
        (void)runtime::program_streams_of(SharedBytes::copy_of(Bytes(bytes).first(size)));
}

}  // namespace
}  // namespace reef::tool
