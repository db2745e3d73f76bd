// reef compile.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/random_network.h"
#include "edgetpu/compiler/island_network.h"
#include "reef/base/file.h"
#include "reef/base/text.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text_in(const std::string& path) {
    const auto bytes = read_file(path);
    EXPECT_TRUE(bytes) << path;
    if (!bytes) return {};
    const Bytes all = bytes->view();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
}

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
    const auto document = nlohmann::json::parse(expect_ok(
        {"compile", plain, "--target", "edgetpu", "--json", "-o", compiled, "--no-verify"}));
    EXPECT_EQ(document["schema_version"], 1);
    EXPECT_EQ(document["target"], "edgetpu");
    EXPECT_FALSE(document.contains("verification"));
    EXPECT_TRUE(document.at("verified").is_null());
    EXPECT_EQ(document["not_verified"], "--no-verify was given");
    ASSERT_FALSE(document["operators"].empty());
    for (const auto& op : document["operators"])
        EXPECT_EQ(op.contains("reason"), !op["on_chip"].get<bool>());
    EXPECT_GT(document["programs"][0]["instruction_bytes"], 0);
    const auto verified = nlohmann::json::parse(
        expect_ok({"compile", plain, "--target", "edgetpu", "--json", "--verify"}));
    EXPECT_EQ(verified["verification"]["passed"], true);
    EXPECT_EQ(verified["verification"]["differing"], 0);
    EXPECT_EQ(verified["verified"], true);
    EXPECT_FALSE(verified.contains("not_verified"));
}

/// What it would take, without compiling: the same verdicts.
TEST_F(CompileVerbTest, CheckSaysAVerdictForEachOperator) {
    const auto compiled_as = nlohmann::json::parse(
        expect_ok({"compile", plain, "--target", "edgetpu", "--json", "--no-verify"}));
    const auto checked =
        nlohmann::json::parse(expect_ok({"check", plain, "--target", "edgetpu", "--json"}));
    EXPECT_EQ(checked["schema_version"], 1);
    EXPECT_EQ(checked["operators"], compiled_as["operators"]) << checked.dump(1);
    EXPECT_THAT(expect_ok({"check", plain, "--target", "edgetpu"}),
                AllOf(HasSubstr("plain model for the Edge TPU"), HasSubstr("on the chip")));
}

TEST_F(CompileVerbTest, SeveralModelsAreWrittenToAFolderForOneChip) {
    const auto other = write("other.tflite", model::write_tflite(test::random_network(9)).value());
    const auto folder = file("both");
    const auto text =
        expect_ok({"compile", plain, other, "--target", "edgetpu", "-o", folder, "--verify"});
    EXPECT_THAT(text, AllOf(HasSubstr("net_edgetpu.tflite"), HasSubstr("other_edgetpu.tflite"),
                            Not(HasSubstr("Not verified"))));
    for (const char* name : {"net", "other"})
        EXPECT_THAT(expect_ok({"disasm", folder + "/" + name + "_edgetpu.tflite", "--check"}),
                    HasSubstr("all rules kept"));
    const auto document = nlohmann::json::parse(
        expect_ok({"compile", plain, other, "--target", "edgetpu", "--json", "--no-verify"}));
    EXPECT_EQ(document["models"].size(), 2U);
    expect_error({"compile", plain, plain, "--target", "edgetpu", "-o", folder}, 2,
                 "two of the models have one file name");
    expect_error({"compile", plain, other, "--target", "edgetpu", "--print-after", "place"}, 2,
                 "are of one model");
    for (const char* segments : {"1", "2"})
        expect_error({"compile", plain, "--target", "edgetpu", "-o", file("ok.tflite"),
                      segments == std::string("1") ? other : "--segments=2"},
                     2, "several models are written to a folder");
    std::filesystem::create_directory(file("folder.tflite"));
    expect_ok({"compile", plain, other, "--target", "edgetpu", "--no-verify", "-o",
               file("folder.tflite")});
}

/// The smaller model's file fits below the limit, the larger one's does not.
TEST_F(CompileVerbTest, OfFilesOfOneCommandAllAreWrittenOrNone) {
    const auto other = write("other.tflite", model::write_tflite(test::random_network(9)).value());
    const auto folder = file("both");
    const auto size = [&](const char* name) {
        return std::filesystem::file_size(folder + "/" + name + "_edgetpu.tflite");
    };
    expect_ok({"compile", plain, other, "--target", "edgetpu", "--no-verify", "-o", folder});
    const auto [small, large] = std::minmax({size("net"), size("other")});
    const auto limit = small / 512 + 1;  // in the shell's blocks
    ASSERT_LT(limit * 512, large);
    // The smaller first, so that it is written before the failure.
    const std::string words =
        size("net") < size("other") ? plain + " " + other : other + " " + plain;
    const auto limited = [&](const std::string& more) {
        return test::run_process(
            {"/bin/sh", "-c",
             fmt::format("trap '' XFSZ; ulimit -f {}; exec {} compile {} --target edgetpu "
                         "--no-verify {}",
                         limit, REEF_COMMAND, words, more)});
    };
    std::filesystem::remove_all(folder);
    const auto done = limited("-o " + folder);
    EXPECT_EQ(done.exit_code, 1) << done.out;
    EXPECT_THAT(done.err, HasSubstr("cannot write: File too large"));
    EXPECT_FALSE(std::filesystem::exists(folder));

    // Files that were there stay.
    std::filesystem::create_directory(folder);
    for (const char* name : {"net", "other"})
        write(fmt::format("both/{}_edgetpu.tflite", name), "before");
    EXPECT_EQ(limited("-o " + folder).exit_code, 1);
    for (const char* name : {"net", "other"})
        EXPECT_EQ(text_in(folder + "/" + name + "_edgetpu.tflite"), "before");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);

    std::filesystem::create_directory(file("vendors"));
    const auto vendors =
        test::run_process({"/bin/sh", "-c",
                           fmt::format("trap '' XFSZ; ulimit -f {}; exec {} -o {} {}", limit,
                                       REEF_EDGETPU_COMPILER, file("vendors"), words)});
    EXPECT_EQ(vendors.exit_code, 1) << vendors.out;
    EXPECT_TRUE(std::filesystem::is_empty(file("vendors")));
}

TEST_F(CompileVerbTest, SegmentsAreWrittenToAFolderForAChipEach) {
    const auto folder = file("pipeline");
    const auto text = expect_ok(
        {"compile", plain, "--target", "edgetpu", "--segments", "2", "-o", folder, "--verify"});
    EXPECT_THAT(text, AllOf(HasSubstr("segment 0: operators 0 to "),
                            HasSubstr("net_segment_1_of_2_edgetpu.tflite"),
                            Not(HasSubstr("Not verified"))));
    for (const char* name : {"net_segment_0_of_2", "net_segment_1_of_2"})
        EXPECT_THAT(expect_ok({"disasm", folder + "/" + name + "_edgetpu.tflite", "--check"}),
                    HasSubstr("all rules kept"));
    const auto document = nlohmann::json::parse(expect_ok(
        {"compile", plain, "--target", "edgetpu", "--segments", "2", "--json", "--no-verify"}));
    ASSERT_EQ(document["segments"].size(), 2U);
    const auto &first = document["segments"][0], &second = document["segments"][1];
    EXPECT_EQ(first["output"], "");
    EXPECT_EQ(first["first_operator"], 0);
    EXPECT_EQ(second["first_operator"], first["operator_count"]);
    EXPECT_GT(first["estimate_seconds"], 0);
    ASSERT_FALSE(second["inputs"].empty());
    for (const auto& name : second["inputs"])
        EXPECT_TRUE(std::ranges::count(first["outputs"], name) == 1 ||
                    std::ranges::count(first["inputs"], name) == 1)
            << name;
}

/// The plain model is the whole one: what a segment computes of it goes by names.
TEST_F(CompileVerbTest, SegmentsAreReadWithThePlainModelOfTheWhole) {
    const auto folder = file("pipeline");
    expect_ok(
        {"compile", plain, "--target", "edgetpu", "--segments", "2", "-o", folder, "--no-verify"});
    for (const char* number : {"0", "1"}) {
        const std::string segment = folder + "/net_segment_" + number + "_of_2_edgetpu.tflite";
        const auto weights = file("weights.npz"), changed = file("changed.tflite");
        EXPECT_THAT(
            expect_ok({"weights", "verify", segment, "--like", plain}),
            AllOf(HasSubstr("counted from operator"), HasSubstr("0 differ, 0 unexplained")));
        const auto account = nlohmann::json::parse(
            expect_ok({"weights", "verify", segment, "--like", plain, "--json"}));
        EXPECT_EQ(account["complete"], true);
        EXPECT_EQ(account["first_operator"] == 0, *number == '0');
        expect_ok({"weights", "get", segment, "--like", plain, "-o", weights});
        expect_ok({"weights", "set", segment, "--like", plain, "--from", weights, "-o", changed});
        EXPECT_EQ(read_file(changed)->view().size(), read_file(segment)->view().size());
        const std::vector<std::string> retarget{"retarget", segment, "--to", plain,
                                                "--like",   plain,   "-o",   changed};
        EXPECT_THAT(expect_ok(retarget), AllOf(HasSubstr("0 instructions and 0 bytes"),
                                               HasSubstr("a segment: it computes " + plain)));
        // HARD_SWISH and PRELU: how their instructions hold scales is not known.
        const auto unread = reef_command({"retarget", segment, "--to", plain, "-o", changed});
        EXPECT_EQ(unread.exit_code, 1);
        EXPECT_THAT(unread.err, HasSubstr("whether its quantisation differs cannot be read"));
        EXPECT_THAT(expect_ok({"compare", segment, plain, "--layers"}),
                    AllOf(HasSubstr("equal: "), HasSubstr("b  operators ")));
        EXPECT_THAT(reef_command({"compare", segment, plain}).out, HasSubstr("b  operators "));
    }
}

/// Each segment takes what is its own of the whole network's arrays.
TEST_F(CompileVerbTest, ASegmentIsGivenTheArraysOfTheWhole) {
    const auto folder = file("pipeline"), all = file("all.npz"), changed = file("changed.tflite");
    expect_ok({"compile", plain, "--target", "edgetpu", "-o", compiled, "--no-verify"});
    expect_ok({"weights", "get", compiled, "--like", plain, "-o", all});
    const auto arrays = read_npz(read_file(all)->view()).value();
    expect_ok(
        {"compile", plain, "--target", "edgetpu", "--segments", "2", "-o", folder, "--no-verify"});
    std::size_t taken = 0;
    for (const char* number : {"0", "1"}) {
        const std::string segment = folder + "/net_segment_" + number + "_of_2_edgetpu.tflite";
        const std::vector<std::string> set{"weights", "set", segment, "--like", plain,
                                           "--from",  all,   "-o",    changed,  "--json"};
        const auto result = reef_command(set);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        const auto document = nlohmann::json::parse(result.out);
        const std::size_t own = document["arrays"].size();
        EXPECT_EQ(document["arrays_of_other_segments"], arrays.size() - own);
        EXPECT_THAT(result.err,
                    HasSubstr(fmt::format("{} left out", plural(arrays.size() - own, "array"))));
        EXPECT_EQ(text_in(changed), text_in(segment));
        taken += own;
    }
    EXPECT_EQ(taken, arrays.size());

    NamedArrays more = arrays;
    more.emplace_back("nobody's", float_array({1}, {1}));
    const auto odd = write("odd.npz", write_npz(more, Compression::stored).value());
    expect_error({"weights", "set", folder + "/net_segment_0_of_2_edgetpu.tflite", "--like", plain,
                  "--from", odd, "-o", changed + "2"},
                 1, "nobody's");
    const auto first = folder + "/net_segment_0_of_2_edgetpu.tflite", others = file("others.npz");
    expect_ok({"weights", "get", folder + "/net_segment_1_of_2_edgetpu.tflite", "--like", plain,
               "-o", others});
    expect_error({"weights", "set", first, "--like", plain, "--from", others, "-o", changed + "2"},
                 1, "none of its arrays is of an operator of this segment");
    // Of a whole program there are no others.
    expect_error({"weights", "set", compiled, "--like", plain, "--from", odd, "-o", changed + "2"},
                 1, "nobody's");
}

TEST_F(CompileVerbTest, RefusesSegmentsByName) {
    const auto other = write("other.tflite", model::write_tflite(test::random_network(9)).value());
    const auto refused = [&](const std::vector<std::string>& more, int exit, const char* what) {
        std::vector<std::string> arguments{"compile", plain, "--no-verify"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        expect_error(arguments, exit, what);
    };
    refused({other, "--target", "edgetpu", "--segments", "2"}, 2, "one model is divided");
    refused({"--target", "edgetpu", "--segments", "900"}, 1, "is not divided into 900 segments");
    refused({"--target", "edgetpu", "--segments", "2", "-o", "-"}, 2, "name a folder");
    refused({"--target", "edgetpu", "--segments", "2", "--print-after", "tile"}, 2,
            "no --segments");
    refused({"--target", "rk3588", "--segments", "2"}, 2, "segments are not for this chip");
}

TEST_F(CompileVerbTest, PrintsWhatAPassLeaves) {
    EXPECT_THAT(expect_ok({"compile", plain, "--target", "edgetpu", "--print-after", "legalise"}),
                StartsWith("0 "));
    EXPECT_THAT(expect_ok({"compile", plain, "--target", "edgetpu", "--print-after", "emit"}),
                HasSubstr("halt last=1"));
    EXPECT_THAT(expect_ok({"compile", plain, "--target", "edgetpu", "--print-after", "embed"}),
                AllOf(StartsWith("package for runtime 14"), HasSubstr("EXECUTION_ONLY 'model'"),
                      HasSubstr("PARAMETER_CACHING 'parameters'"), HasSubstr("  out '")));
}

TEST_F(CompileVerbTest, PrintsWhatAPassFinds) {
    const auto printed = [&](const char* flag, const char* pass) {
        return expect_ok({"compile", plain, "--target", "edgetpu", flag, pass});
    };
    EXPECT_EQ(printed("--print-before", "partition"), printed("--print-after", "legalise"));
    EXPECT_EQ(printed("--print-before", "fuse"), printed("--print-after", "tile"));
    EXPECT_NE(printed("--print-before", "place"), printed("--print-after", "place"));
    expect_error({"compile", plain, "--target", "edgetpu", "--print-before", "read"}, 2,
                 "nothing is there before 'read'");
}

TEST_F(CompileVerbTest, WhatAPassLeavesStandsBesideWhatElseWasAskedFor) {
    const std::vector<std::string> words = {"compile",       plain,  "--target",   "edgetpu",
                                            "--print-after", "tile", "--no-verify"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return more;
    };
    const auto listing = expect_ok(words);
    EXPECT_EQ(nlohmann::json::parse(expect_ok(with({"--json"})))["listing"], listing);
    EXPECT_THAT(expect_ok(with({"--forms"})), AllOf(StartsWith(listing), HasSubstr("\nforms\n")));
    EXPECT_THAT(expect_ok(with({"--gains"})), AllOf(StartsWith(listing), HasSubstr("\npasses ")));
    expect_error(with({"-o", "-"}), 2, "standard output cannot hold the model and what a pass");
    for (const char* part : {"halo", "input"})
        for (const char* flag : {"--print-after", "--print-before"})
            expect_error({"compile", plain, "--target", "edgetpu", flag, part}, 2,
                         fmt::format("'{}' is a part of the pass emit", part));
}

TEST_F(CompileVerbTest, PrintsWhatPassesGain) {
    const auto text =
        expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify", "--gains"});
    EXPECT_THAT(text,
                AllOf(HasSubstr("with all"), HasSubstr("without fuse"), HasSubstr("without spread"),
                      HasSubstr("without ahead"), HasSubstr("without halo"),
                      HasSubstr("without input"), HasSubstr("without all of them")));
    const auto document = nlohmann::json::parse(
        expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify", "--gains", "--json"}));
    const auto& passes = document["passes"];
    ASSERT_EQ(passes.size(), 7U);
    const auto alone = nlohmann::json::parse(expect_ok(
        {"compile", plain, "--target", "edgetpu", "--no-verify", "--without", "ahead", "--json"}));
    EXPECT_EQ(passes[0]["estimated_cycles"], document["programs"][0]["estimated_cycles"]);
    EXPECT_EQ(passes[3]["without"], "ahead");
    EXPECT_EQ(passes[3]["estimated_cycles"], alone["programs"][0]["estimated_cycles"]);
    EXPECT_GT(passes[6]["estimated_cycles"], passes[0]["estimated_cycles"]);
    EXPECT_FALSE(alone.contains("passes"));
    expect_error({"compile", plain, "--target", "edgetpu", "--without", "sleep"}, 2, "sleep");
}

TEST_F(CompileVerbTest, NamesTensorsThatLieOnTheHost) {
    const auto skips = write("skips.tflite", model::write_tflite(test::random_network(90)).value());
    std::vector<std::string> words = {"compile",     skips,     "--target", "edgetpu",
                                      "--no-verify", "--spill", "always"};
    EXPECT_THAT(expect_ok(words), AllOf(HasSubstr("of 't1' to the host, once back"),
                                        HasSubstr("of the host's memory")));
    words.emplace_back("--json");
    const auto program = nlohmann::json::parse(expect_ok(words))["programs"][0];
    ASSERT_FALSE(program["spilled"].empty());
    EXPECT_EQ(program["spilled"][0]["tensor"], "t1");
    EXPECT_EQ(program["spilled"][0]["fetches"], 1);
    EXPECT_GE(program["scratch_bytes"], program["spilled"][0]["bytes"]);
    words[6] = "never";
    EXPECT_TRUE(nlohmann::json::parse(expect_ok(words))["programs"][0]["spilled"].empty());
    words[6] = "sometimes";
    expect_error(words, 2, "sometimes");
}

TEST_F(CompileVerbTest, KeepsIslandsWhenAsked) {
    const auto island = write("island.tflite", model::write_tflite(test::island_network()).value());
    const auto programs = [&](std::vector<std::string> more) {
        std::vector<std::string> arguments{"compile",     island,           "--target", "edgetpu",
                                           "--no-verify", "--max-programs", "2",        "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return nlohmann::json::parse(expect_ok(arguments))["programs"].size();
    };
    EXPECT_EQ(programs({}), 1U);
    EXPECT_EQ(programs({"--keep-islands"}), 2U);
}

TEST_F(CompileVerbTest, ComparesWithAnotherCompilersModel) {
    expect_ok({"compile", plain, "--target", "edgetpu", "--max-programs", "1", "--schedule",
               "plain", "-o", compiled, "--no-verify"});
    const auto text =
        expect_ok({"compile", plain, "--target", "edgetpu", "--against", compiled, "--no-verify"});
    EXPECT_THAT(text, AllOf(HasSubstr("estimated cycles"), HasSubstr("operators on the chip"),
                            HasSubstr("bytes of the file")));
    const auto document = nlohmann::json::parse(expect_ok(
        {"compile", plain, "--target", "edgetpu", "--against", compiled, "--no-verify", "--json"}));
    const auto& against = document["against"];
    EXPECT_EQ(against["here"]["operators_on_chip"], against["there"]["operators_on_chip"]);
    EXPECT_LE(against["here"]["estimated_cycles"], against["there"]["estimated_cycles"]);
    EXPECT_EQ(against["there"]["file_bytes"], std::filesystem::file_size(compiled));
    for (const auto& row : against["placements"]) EXPECT_EQ(row["on_chip"], row["on_chip_there"]);
    expect_error({"compile", plain, "--target", "edgetpu", "--against", plain}, 1,
                 "it has no program for 'edgetpu'");
}

TEST_F(CompileVerbTest, WritesReports) {
    const auto html = file("r.html"), csv = file("r.csv"), json = file("r.json");
    for (const auto& report : {html, csv, json})
        expect_ok({"compile", plain, "--target", "edgetpu", "--report", report, "--no-verify"});
    EXPECT_THAT(text_in(html), AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("<h2>programs</h2>"),
                                     HasSubstr("<th>on_chip</th>")));
    EXPECT_THAT(text_in(csv), StartsWith("index,name,on_chip,reason\n0,"));
    const auto document = nlohmann::json::parse(text_in(json));
    EXPECT_EQ(document["schema_version"], 1);
    // What a chip's programs say of each operator stands beside it.
    for (const auto& report : {html, csv})
        expect_ok({"compile", plain, "--target", "rk3588", "--report", report, "--no-verify"});
    EXPECT_THAT(text_in(html),
                AllOf(HasSubstr("<h2>programs 0</h2>"), HasSubstr("<th>bytes_moved.total</th>")));
    EXPECT_THAT(text_in(csv), AllOf(StartsWith("index,name,on_chip,reason,tasks,data_banks"),
                                    HasSubstr(",bytes_moved.total,")));
    expect_error({"compile", plain, "--target", "edgetpu", "--report", file("r.pdf")}, 2,
                 "a report is .html, .csv or .json");
    // Not there yet, under two spellings, and there.
    for (int i = 0; i < 2; ++i) {
        expect_error({"compile", plain, "--target", "edgetpu", "-o", file("one.json"), "--report",
                      file("./one.json")},
                     2, "two outputs would be written to it");
        EXPECT_TRUE(write_file(file("one.json"), std::vector<std::byte>(1)));
    }
}

/// A program of that name stands in for the vendor's: what it writes is a model of ours.
TEST_F(CompileVerbTest, AsksTheVendorsCompilerWhereItIsInstalled) {
    expect_ok({"compile", plain, "--target", "edgetpu", "-o", compiled, "--no-verify"});
    const auto folder = std::filesystem::path(compiled).parent_path() / "bin";
    std::filesystem::create_directory(folder);
    const test::ProcessOptions here{.environment = {"PATH=" + folder.string()}};
    expect_error({"compile", plain, "--target", "edgetpu", "--with", "vendor", "--no-verify"}, 1,
                 "'edgetpu_compiler' is not installed", here);
    write("bin/edgetpu_compiler",
          fmt::format("#!/bin/sh\n/bin/cp {} \"$3/net_edgetpu.tflite\"\n", compiled));
    std::filesystem::permissions(folder / "edgetpu_compiler", std::filesystem::perms::owner_all);
    EXPECT_THAT(
        expect_ok({"compile", plain, "--target", "edgetpu", "--with", "vendor", "--no-verify"},
                  here),
        HasSubstr("against net_edgetpu.tflite"));
}

TEST_F(CompileVerbTest, CountsForms) {
    const auto document = nlohmann::json::parse(
        expect_ok({"compile", plain, "--target", "edgetpu", "--forms", "--no-verify", "--json"}));
    const auto& forms = document["forms"];
    std::size_t unproven = 0;
    for (const auto& form : forms["unproven"]) unproven += form["count"].get<std::size_t>();
    EXPECT_EQ(forms["known"].get<std::size_t>() + unproven, forms["instructions"]);
    EXPECT_GT(forms["known"], 0);
}

TEST_F(CompileVerbTest, RefusesByName) {
    expect_error({"compile", plain, "--target", "toaster", "-o", compiled}, 2,
                 "nothing compiles for 'toaster' (targets are edgetpu");
    expect_error({"compile", plain, "--target", "edgetpu", "--print-after", "sleep"}, 2,
                 "no pass 'sleep'");
    expect_error({"compile", plain, "--target", "edgetpu", "-o", plain}, 2, "net.tflite");
    expect_error({"compile", plain, "--target", "edgetpu", "--schedule", "foo"}, 2,
                 "--schedule: foo not in {overlapped,plain,vendor}");
    // The name that was typed.
    expect_error({"compile", plain, "--target", "edgetpu", "--max-subgraphs", "abc"}, 2,
                 "--max-subgraphs: abc is no whole number from 1 to 1000");
    expect_error({"compile", plain, "--target", "edgetpu", "--max-subgraphs=abc"}, 2,
                 "--max-subgraphs: abc is no whole number from 1 to 1000");
    expect_error({"compile", plain, "--target", "edgetpu", "--max-programs", "abc"}, 2,
                 "--max-programs: abc is no whole number from 1 to 1000");
    expect_error({"compile", plain, "--target", "rk3588", "--runtime_version", "9"}, 2,
                 "--runtime_version: 9 not in");
    expect_error({"compile", plain, "--target", "edgetpu", "--cores", "2"}, 2,
                 "has no option --cores (it is an option for rk3588; --segments divides a model");
    expect_error({"compile", plain, "--target", "rk3588", "--gains"}, 2,
                 "has no option --gains (it is an option for edgetpu)");
    expect_error({"compile", plain, "--target", "edgetpu", "--no-verify", "-o", "/proc/x"}, 1,
                 "/proc/x: cannot create a file in /proc: No such file or directory (name a file");
    expect_error({"compile", plain, "--target", "edgetpu", "--no-verify", "-o", "/dev/full"}, 1,
                 "No space left on device (free space there, or name a file elsewhere)");
    expect_ok({"compile", plain, "--target", "edgetpu", "-o", compiled, "--no-verify"});
    expect_error({"compile", compiled, "--target", "edgetpu", "-o", file("again.tflite")}, 1,
                 "is compiled already");
}

TEST_F(CompileVerbTest, ReportsTellOfSeveralModels) {
    const auto other = write("other.tflite", model::write_tflite(test::random_network(9)).value());
    const auto html = file("r.html"), csv = file("r.csv"), json = file("r.json");
    for (const auto& report : {html, csv, json})
        expect_ok({"compile", plain, other, "--target", "edgetpu", "--report", report,
                   "--no-verify", "-o", file("both")});
    EXPECT_THAT(text_in(html), AllOf(HasSubstr("<h1>reef compile"), HasSubstr("<h2>models 0</h2>"),
                                     HasSubstr("<h2>models 1</h2>")));
    EXPECT_THAT(text_in(csv), AllOf(StartsWith("model,index,name,on_chip,reason\n" + plain + ",0,"),
                                    HasSubstr("\n" + other + ",0,")));
    const auto printed = expect_ok({"compile", plain, other, "--target", "edgetpu", "--json",
                                    "--no-verify", "-o", file("both")});
    EXPECT_EQ(nlohmann::json::parse(text_in(json)), nlohmann::json::parse(printed));
    expect_ok({"compile", plain, "--segments", "2", "--target", "edgetpu", "--report", csv,
               "--no-verify", "-o", file("both")});
    EXPECT_THAT(text_in(csv),
                AllOf(StartsWith("segment,index,name"), HasSubstr("\n0,0,"), HasSubstr("\n1,0,")));
    expect_error({"compile", plain, other, "--target", "edgetpu", "--report", file("r.pdf")}, 2,
                 "a report is .html, .csv or .json");
    expect_error({"compile", plain, other, "--target", "edgetpu", "-o", file("both"), "--report",
                  file("both/net_edgetpu.tflite")},
                 2, "a report is .html");
}

TEST_F(CompileVerbTest, CommandOfTheVendorsFormRefusesByName) {
    const auto refused = [&](const std::string& flag, const char* words) {
        const auto done = test::run_process({REEF_EDGETPU_COMPILER, flag, plain});
        EXPECT_EQ(done.exit_code, 2);
        EXPECT_THAT(done.err,
                    AllOf(StartsWith("reef-edgetpu-compiler: " + flag), HasSubstr(words)));
        EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
        EXPECT_EQ(done.out, "");
    };
    refused("-a", "--max-programs");
    refused("--enable_multiple_subgraphs", "--max-programs");
    refused("-t", "leave it out");
    refused("-d", "leave it out");
    refused("-i", "-n");
    const auto unknown = test::run_process({REEF_EDGETPU_COMPILER, "--bogus", plain});
    EXPECT_THAT(unknown.err, AllOf(StartsWith("reef-edgetpu-compiler: "), HasSubstr("--bogus"),
                                   HasSubstr("(see reef-edgetpu-compiler --help)")));
}

TEST_F(CompileVerbTest, CommandOfTheVendorsFormWritesModelAndLog) {
    const std::string folder = std::filesystem::path(plain).parent_path();
    const auto done = test::run_process({REEF_EDGETPU_COMPILER, "-s", "-o", folder, plain});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, AllOf(HasSubstr("Output model: net_edgetpu.tflite"),
                                HasSubstr("Mapped to Edge TPU")));
    EXPECT_TRUE(exists("net_edgetpu.log"));
    EXPECT_THAT(expect_ok({"disasm", compiled, "--check"}), HasSubstr("all rules kept"));
    EXPECT_THAT(expect_ok({"inspect", compiled}), HasSubstr("for runtime 14 or newer"));
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER, "-m", "13", "-o", folder, plain}).exit_code,
              0);
    EXPECT_THAT(expect_ok({"inspect", compiled}), HasSubstr("for runtime 13 or newer"));
    const auto older = test::run_process({REEF_EDGETPU_COMPILER, "-m", "9", "-o", folder, plain});
    EXPECT_EQ(older.exit_code, 2);
    EXPECT_THAT(older.err, HasSubstr("programs for runtime version '9'"));
    const auto divided = test::run_process({REEF_EDGETPU_COMPILER, "-n", "2", "-o", folder, plain});
    EXPECT_EQ(divided.exit_code, 0) << divided.err;
    EXPECT_TRUE(exists("net_segment_1_of_2_edgetpu.tflite"));
    EXPECT_TRUE(exists("net_segment_1_of_2_edgetpu.log"));
    const auto refused = test::run_process({REEF_EDGETPU_COMPILER, "-n", "2", plain, plain});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("one model is divided into segments"));
    const auto stem = std::filesystem::path(plain).stem().string();
    const auto other = file("other");
    std::filesystem::create_directories(other + "/" + stem + "_edgetpu.log");
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER, "-o", other, plain}).exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(other + "/" + stem + "_edgetpu.tflite"));
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER}).exit_code, 2);
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER, "--bogus", plain}).exit_code, 2);
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER, "--help"}).exit_code, 0);
    EXPECT_EQ(test::run_process({REEF_EDGETPU_COMPILER, folder + "/none.tflite"}).exit_code, 1);
}

}  // namespace
}  // namespace reef::tool
