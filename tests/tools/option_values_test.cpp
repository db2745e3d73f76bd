// What options take, over all verbs: numbers of a range, standard input for one of them, and
// standard output for what is no folder and beside which nothing is printed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"

namespace reef::tool {
namespace {

using Words = std::vector<std::string>;

class OptionValues : public CommandTest {
  protected:
    static Words with(Words line, const Words& more) {
        line.insert(line.end(), more.begin(), more.end());
        return line;
    }
    void expect_usage(const Words& line, const std::string& words) const {
        SCOPED_TRACE(fmt::format("reef {}", fmt::join(line, " ")));
        expect_error(line, 2, words);
        // Folders would appear beside the test, not among its files.
        EXPECT_FALSE(std::filesystem::exists("-"));
    }

    std::string array = write_array("a.npy", float_array({1, 4}, {1, 2, 3, 4}));
    std::string zeros = write_array("b.npy", float_array({1, 4}, {0, 0, 0, 0}));
};

TEST_F(OptionValues, SeedsAreWholeNumbersOf64Bits) {
    for (const Words& verb : {Words{"bench", two_input_model},
                              {"compare", two_input_model, two_input_model},
                              {"record", two_input_model, "-o", file("traffic.log")},
                              {"debug", two_input_model}})
        for (const std::string seed : {"-1", "99999999999999999999", "18446744073709551616", "",
                                       "1.5", "+1", " 1", "0x", "010"})
            expect_usage(with(verb, {"--seed", seed}),
                         fmt::format("--seed: {} is no whole number from 0 to 18446744073709551615",
                                     seed.empty() ? "''" : seed));
    for (const std::string seed : {"0", "0x10", "18446744073709551615"})
        expect_ok({"compare", two_input_model, two_input_model, "--seed", seed});
}

TEST_F(OptionValues, CountsAreInTheirRanges) {
    expect_usage({"debug", two_input_model, "--operator", "-1"},
                 "--operator: -1 is no whole number");
    expect_usage({"bench", two_input_model, "--runs", "0"}, "0 is no whole number from 1 to");
    expect_usage({"bench", two_input_model, "--num_runs", "1e3"}, "--num_runs: 1e3 is no whole");
    expect_usage({"run", two_input_model, "--threads", "257"}, "from 1 to 256");
    expect_usage({"record", two_input_model, "-o", file("x"), "--runs", "-1"}, "--runs: -1");
    for (const char* token : {"-1", "010", "", "0x1ffffffffffffffff"})
        expect_usage({"retarget", array, "--to", array, "-o", file("x"), "--token", token},
                     "is no whole number");
    expect_usage({"disasm", array, "--executable", ""}, "--executable: '' is neither");
    expect_usage({"diff", array, array, "--executable", ""}, "--executable: '' is neither");
}

TEST_F(OptionValues, TolerancesAreNumbersThatCanBeReached) {
    for (const char* tolerance : {"inf", "nan", "1e400", "-1", ""})
        expect_usage({"compare", array, zeros, "--tolerance", tolerance}, "is not 0 or more");
    expect_usage({"compare", array, zeros, "--cosine", "2"}, "2 is not -1 to 1");
    expect_usage({"bench", two_input_model, "--seconds", "inf"}, "inf is not 0.001 to 86400");
    for (const char* tolerance : {"nan,nan", "0.9,nan", "2,2", "inf,inf", "-2,0.9"})
        expect_usage({"bisect", "net.mlir", "--reference", "a.npz", "--actual", "b.npz",
                      "--tolerance", tolerance},
                     "is not -1 to 1");
}

TEST_F(OptionValues, ACommandThatReadsNoCutFindsNothing) {
    expect_usage({"bisect", "net.mlir", "--run", "true"}, "--run has no {mlir}");
}

TEST_F(OptionValues, StandardInputIsReadOnce) {
    for (const Words& line : {Words{"diff", "-", "-"},
                              {"inspect", "-", "-"},
                              {"compare", "-", "-"},
                              {"retarget", "-", "--to", "-", "-o", file("out")},
                              {"weights", "verify", "-", "--like", "-"},
                              {"run", "-", "-"},
                              {"run", two_input_model, "--input", "left=-", "--input", "right=-"},
                              {"run", two_input_model, "-", "1x4xf32=@-"},
                              {"debug", "-", "--script", "-"},
                              {"debug", "-"},
                              {"debug", two_input_model, "--input", "-"}})
        expect_usage(line, "standard input can be read once");
}

TEST_F(OptionValues, StandardOutputIsNoFolder) {
    const std::string words = "'-' is standard output, which holds no folder";
    expect_usage({"run", two_input_model, array, array, "-o", "-"}, words);
    expect_usage({"run", two_input_model, array, array, "--dump-all", "-"}, words);
    expect_usage({"extract", array, "-o", "-"}, words);
    expect_usage({"debug", two_input_model, "--script", array, "-o", "-"}, words);
    expect_usage({"demo", "--out", "-"}, words);
    expect_usage({"demo", "sophgo", "--out", "-"}, words);
}

TEST_F(OptionValues, StandardOutputHoldsOneThing) {
    expect_usage({"asm", array, "-o", "-", "--json"},
                 "standard output cannot hold the file and JSON (give --output a name)");
    expect_usage({"cut", array, "--at", "conv", "-o", "-", "--json"},
                 "standard output cannot hold the file and JSON");
    expect_usage({"cut", array, "--at", "conv", "-o", file("cut.mlir"), "--weights", array,
                  "--out-weights", "-"},
                 "--out-weights: standard output cannot hold the file and what is printed");
    for (const Words& more : {Words{}, {"--json"}, {"--csv"}})
        expect_usage(with({"bench", two_input_model, "--runs", "1", "--trace", "-"}, more),
                     "--trace: standard output cannot hold the file and what is printed");
    for (const Words& more : {Words{}, {"--json"}})
        expect_usage(with({"doctor", "--device", "rk3588:sim", "--probe", "-"}, more),
                     "--probe: standard output cannot hold the file and what is printed");
    expect_usage({"doctor", "--device", "rk3588:sim", "--probe", file("p"), "--udev-rule"},
                 "--udev-rule");
    expect_usage({"doctor", "--device", "edgetpu:sim", "--probe", file("p")},
                 "there are no questions about this chip");
}

TEST_F(OptionValues, WhatHoldsNothingIsAFailure) {
    const std::string empty = write("empty", std::string_view());
    const std::string blank = write("blank.s", std::string_view("\n\n"));
    expect_error({"disasm", empty}, 1, "the file is empty");
    expect_error({"diff", empty, empty}, 1, "the file is empty");
    expect_error({"check", empty, "--target", "edgetpu"}, 1, "the file is empty");
    expect_error({"asm", empty, "-o", file("o.bin")}, 1, "the text holds no instructions");
    expect_error({"asm", blank, "-o", file("o.bin")}, 1, "the text holds no instructions");
    expect_error(
        {"asm", write("wide.s", std::string_view("start bits=99999999999\n")), "-o", file("o.bin")},
        1, "wide.s");
}

TEST_F(OptionValues, AModelIsNotComparedWithArrays) {
    for (const auto& [a, b] : {std::pair(two_input_model, array), {array, two_input_model}})
        expect_error({"compare", a, b}, 1, "two.tflite: a model cannot be compared with arrays");
    expect_error({"compare", two_input_model, file("none.npy")}, 1, "none.npy: no such file");
}

}  // namespace
}  // namespace reef::tool
