// Exit codes, over all verbs: what a file holds is a failure, what the command line says wrong is
// not.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <map>
#include <utility>

#include "command.h"
#include "compiler/random_network.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

constexpr int failed = 1, usage = 2, device = 3;

struct Row {
    std::vector<std::string> arguments;  ///< words in capitals stand for files
    int exit_code;
    std::string words;
};

class ExitCodes : public CommandTest {
  protected:
    void SetUp() override {
        expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify", "-o", compiled});
        expect_ok({"weights", "get", compiled, "--like", plain, "-o", file("right.npz")});
        write("garbage", "no file of any kind");
        std::filesystem::create_directory(file("folder"));
        write("streams.txt", "# stream a\nhalt\n# stream b\nhalt\n");
        write_array("wrong.npy", byte_array({3}, {1, 2, 3}));
        const auto right = read_npz(read_file(file("right.npz")).value().view()).value();
        NamedArrays wrong = {{right.front().first, byte_array({3}, {1, 2, 3})}};
        write("wrong.npz", Bytes(write_npz(wrong, Compression::stored).value()));
        wrong.front().first = "nothing";
        write("unknown.npz", Bytes(write_npz(wrong, Compression::stored).value()));
    }

    [[nodiscard]] std::string with_files(const std::string& word) const {
        const std::map<std::string, std::string> files = {{"PLAIN", plain},
                                                          {"COMPILED", compiled},
                                                          {"OTHER", other},
                                                          {"NUMBERS", two_input_model},
                                                          {"GARBAGE", file("garbage")},
                                                          {"ARRAY", file("wrong.npy")},
                                                          {"ARRAYS", file("wrong.npz")},
                                                          {"UNKNOWN_ARRAYS", file("unknown.npz")},
                                                          {"STREAMS", file("streams.txt")},
                                                          {"FOLDER", file("folder")},
                                                          {"NONE", file("none")},
                                                          {"OUT", file("out")}};
        const auto found = files.find(word);
        return found == files.end() ? word : found->second;
    }

    void expect(const std::vector<Row>& rows) const {
        for (const Row& row : rows) {
            SCOPED_TRACE(fmt::format("reef {}", fmt::join(row.arguments, " ")));
            std::vector<std::string> arguments;
            for (const std::string& word : row.arguments) arguments.push_back(with_files(word));
            expect_error(arguments, row.exit_code, row.words);
        }
    }

    std::string plain = write("net.tflite", model::write_tflite(test::random_network(7)).value());
    std::string compiled = file("net_edgetpu.tflite");
    std::string other = write("other.tflite", model::write_tflite(test::random_network(8)).value());
};

TEST_F(ExitCodes, APlainModelWhereACompiledOneIsNeededIsAFailure) {
    expect({{{"weights", "get", "PLAIN", "--like", "PLAIN", "-o", "OUT"}, failed, "not compiled"},
            {{"weights", "set", "PLAIN", "--like", "PLAIN", "--from", "ARRAYS", "-o", "OUT"},
             failed,
             "not compiled"},
            {{"weights", "verify", "PLAIN", "--like", "PLAIN"}, failed, "not compiled"},
            {{"retarget", "PLAIN", "--to", "PLAIN", "-o", "OUT"}, failed, "not compiled"},
            {{"disasm", "PLAIN"}, failed, "not compiled"},
            {{"disasm", "PLAIN", "--check"}, failed, "not compiled"},
            {{"diff", "PLAIN", "COMPILED"}, failed, "not compiled"},
            {{"debug", "PLAIN"}, failed, "not compiled"},
            {{"record", "PLAIN", "-o", "OUT"}, failed, "not compiled"},
            {{"run", "PLAIN", "--device", "edgetpu:sim"}, failed, "no operator compiled"},
            {{"bench", "PLAIN", "--device", "edgetpu:sim"}, failed, "no operator compiled"},
            {{"compare", "PLAIN", "PLAIN", "--layers"}, failed, "must be the compiled one"},
            {{"compile", "PLAIN", "--target", "edgetpu", "--no-verify", "--against", "PLAIN"},
             failed,
             "no program"}});
}

TEST_F(ExitCodes, ACompiledModelWhereAPlainOneIsNeededIsAFailure) {
    expect(
        {{{"compile", "COMPILED", "--target", "edgetpu", "-o", "OUT"}, failed, "compiled already"},
         {{"compile", "COMPILED", "PLAIN", "--target", "edgetpu", "-o", "OUT"},
          failed,
          "compiled already"},
         {{"compile", "COMPILED", "--target", "rk3588", "-o", "OUT"}, failed, "compiled already"},
         {{"weights", "get", "COMPILED", "--like", "COMPILED", "-o", "OUT"}, failed, "is compiled"},
         {{"weights", "verify", "COMPILED", "--like", "COMPILED"}, failed, "is compiled"},
         {{"retarget", "COMPILED", "--to", "COMPILED", "-o", "OUT"}, failed, "is compiled"},
         {{"retarget", "COMPILED", "--to", "PLAIN", "--like", "COMPILED", "-o", "OUT"},
          failed,
          "is compiled"},
         {{"compare", "COMPILED", "COMPILED", "--layers"}, failed, "compiled for the Edge TPU"},
         {{"run", "COMPILED", "--device", "cpu"}, failed, "the CPU cannot run"}});
}

TEST_F(ExitCodes, OtherContentsOfFilesAreFailures) {
    expect(
        {{{"inspect", "GARBAGE"}, failed, "not known"},
         {{"run", "GARBAGE"}, failed, "garbage"},
         {{"compile", "GARBAGE", "--target", "edgetpu"}, failed, "garbage"},
         {{"run", "NONE"}, failed, "no such file"},
         {{"run", "PLAIN", "--input", "ARRAY"}, failed, "the input needs"},
         {{"run", "PLAIN", "--input", "GARBAGE"}, failed, "reads as a tensor"},
         {{"bench", "PLAIN", "--input", "ARRAY"}, failed, "the input needs"},
         {{"compare", "PLAIN", "PLAIN", "--input", "ARRAY"}, failed, "the input needs"},
         {{"compare", "COMPILED", "PLAIN", "--layers", "--input", "ARRAY"},
          failed,
          "the input needs"},
         {{"compare", "COMPILED", "OTHER", "--layers"}, failed, "other"},
         {{"debug", "COMPILED", "--input", "ARRAY"}, failed, "the input needs"},
         {{"record", "COMPILED", "--device", "edgetpu:sim", "--input", "ARRAY", "-o", "OUT"},
          failed,
          "the input needs"},
         {{"weights", "set", "COMPILED", "--like", "PLAIN", "--from", "ARRAYS", "-o", "OUT"},
          failed,
          "an array uint8 3, not"},
         {{"weights", "set", "COMPILED", "--like", "PLAIN", "--from", "UNKNOWN_ARRAYS", "-o",
           "OUT"},
          failed,
          "no layer on the chip has an array of this name"},
         {{"weights", "set", "COMPILED", "--like", "PLAIN", "--from", "ARRAY", "-o", "OUT"},
          failed,
          "not a ZIP archive"},
         {{"retarget", "COMPILED", "--to", "OTHER", "-o", "OUT"}, failed, "another architecture"},
         {{"compile", "PLAIN", "--target", "edgetpu", "--no-verify", "--against", "NUMBERS"},
          failed,
          "not those of the plain model"},
         {{"compile", "PLAIN", "--target", "edgetpu", "--schedule", "vendor"},
          failed,
          "the vendor's schedule of this network is not known"},
         {{"compile", "PLAIN", "--target", "edgetpu", "--schedule", "vendor", "--segments", "2"},
          failed,
          "schedule of this network is not known"},
         {{"compile", "PLAIN", "OTHER", "--target", "edgetpu", "--schedule", "vendor"},
          usage,
          "not known of models compiled together"},
         {{"compile", "PLAIN", "--target", "edgetpu", "--schedule", "vendor",
           "--stream-parameters"},
          usage,
          "streamed parameters"},
         {{"replay", "ARRAY", "COMPILED"}, failed, "neither a recording"}});
}

TEST_F(ExitCodes, AFolderInTheFilesPlaceAndTooManySegmentsAreFailures) {
    expect({{{"inspect", "FOLDER"}, failed, "is a folder, not a file"},
            {{"run", "FOLDER"}, failed, "is a folder, not a file"},
            {{"compile", "FOLDER", "--target", "edgetpu"}, failed, "is a folder, not a file"},
            {{"compile", "PLAIN", "--target", "edgetpu", "-o", "FOLDER"},
             failed,
             "is a folder, not a file"},
            {{"run", "PLAIN", "--input", "FOLDER"}, failed, "is a folder, not a file"},
            {{"record", "COMPILED", "--device", "edgetpu:sim", "-o", "FOLDER"},
             failed,
             "is a folder, not a file"},
            {{"compile", "PLAIN", "--target", "edgetpu", "--segments", "900"},
             failed,
             "is not divided into 900 segments"},
            {{"compile", "PLAIN", "--target", "edgetpu", "--segments", "0"}, usage, "--segments"}});
    std::filesystem::create_directories(file("net_edgetpu.log"));
    for (const auto& [words, code] :
         std::initializer_list<std::pair<std::vector<std::string>, int>>{
             {{file("folder")}, failed},
             {{"-n", "900", plain}, failed},
             {{"-n", "0", plain}, usage},
             {{"-o", file(""), plain}, failed}}) {
        std::vector<std::string> line = {REEF_EDGETPU_COMPILER};
        line.insert(line.end(), words.begin(), words.end());
        EXPECT_EQ(test::run_process(line).exit_code, code)
            << fmt::format("{}", fmt::join(line, " "));
    }
}

TEST_F(ExitCodes, AWrongCommandLineIsAUsageError) {
    expect(
        {{{"run", "PLAIN", "--bogus"}, usage, "--bogus"},
         {{"run", "PLAIN", "--device", "nothing"}, usage, "not a device"},
         {{"run", "PLAIN", "--input", "nothing=ARRAY"}, usage, "no graph input is named"},
         {{"compile", "PLAIN", "--target", "nothing"}, usage, "nothing compiles for"},
         {{"compile", "PLAIN", "--target", "edgetpu", "--print-after", "nothing"},
          usage,
          "no pass 'nothing'"},
         {{"check", "PLAIN"}, usage, "names the chip"},
         {{"check", "PLAIN", "--target", "nothing"}, usage, "nothing"},
         {{"check", "COMPILED", "--target", "rk3588"}, usage, "leave --target out"},
         {{"compare", "COMPILED", "--layers"}, usage, "takes a compiled model and its plain one"},
         {{"disasm", "COMPILED", "--executable", "nothing"}, usage, "no executable 'nothing'"},
         {{"diff", "COMPILED", "COMPILED", "--executable", "nothing"},
          usage,
          "no executable 'nothing'"},
         {{"debug", "COMPILED", "--operator", "99"}, usage, "99"},
         {{"weights", "get", "COMPILED", "-o", "OUT"}, usage, "--like is required"},
         {{"record", "COMPILED", "--device", "cpu", "-o", "OUT"}, usage, "no device"},
         {{"retarget", "COMPILED", "-o", "OUT"}, usage, "--to is required"},
         {{"compile", "PLAIN", "OTHER", "--target", "rk3588", "-o", "OUT"},
          usage,
          "compiled one by one for this chip"},
         {{"compile", "PLAIN", "--target", "rk3588", "--verify"}, usage, "no simulated rk3588"},
         {{"compile", "PLAIN", "--target", "rk3588", "--schedule", "plain"},
          usage,
          "--schedule means nothing"}});
}

TEST_F(ExitCodes, AMissingDeviceIsToldWithTheWayOut) {
    expect({{{"run", "COMPILED", "--device", "edgetpu:usb:99-9"}, device, "edgetpu:usb:99-9"},
            {{"record", "COMPILED", "--device", "edgetpu:usb:99-9", "-o", "OUT"},
             device,
             "--device edgetpu:sim records the same traffic without a stick"}});
    expect_ok({"record", compiled, "--device", "edgetpu:sim", "-o", file("traffic.log")});
}

}  // namespace
}  // namespace reef::tool
