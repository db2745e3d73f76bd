// reef run of compiled models on the simulated Edge TPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "edgetpu/compiler/island_network.h"
#include "reef/base/file.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/simulator.h"
#include "reef/model/tflite.h"
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
        EXPECT_FALSE(finding.contains("text"));
        never_read += finding["kind"] == "row_never_read" ? 1 : 0;
        EXPECT_THAT(text.out, HasSubstr(finding["message"].get<std::string>()));
    }
    EXPECT_GT(never_read, 0);
}

/// The sum behind the CPU's operator is on the chip where islands are kept.
TEST_F(SimulatedRunTest, ArithmeticIsPlacedAsACompiledModelHasIt) {
    const auto plain = write("island.tflite", model::write_tflite(test::island_network()).value());
    const std::string compiled = file("compiled.tflite"), spare = file("spare.tflite");
    const auto compile_to = [&](const std::string& path, std::vector<std::string> more) {
        more.insert(more.begin(),
                    {"compile", plain, "--target", "edgetpu", "--no-verify", "-o", path});
        expect_ok(more);
    };
    compile_to(compiled, {"--keep-islands"});
    compile_to(spare, {});
    const std::vector<std::string> words{"run",    plain,         "--input", input("1x8x8x8", 512),
                                         "--json", "--placements"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return more;
    };
    const auto reason_of_sum = [&](const std::string& like) {
        const auto text = expect_ok(with({"--arithmetic", "edgetpu", "--placed-as", like}));
        return nlohmann::json::parse(text)["placements"][2]["reason"].get<std::string>();
    };
    EXPECT_THAT(reason_of_sum(compiled), HasSubstr("as the Edge TPU computes it"));
    EXPECT_THAT(reason_of_sum(spare), HasSubstr("the compiled model leaves it to the CPU"));
    expect_error(with({"--arithmetic", "edgetpu"}), 1, "RELU_N1_TO_1");
    expect_error(with({"--arithmetic", "edgetpu", "--placed-as", plain}), 1, plain + ": ");
    expect_error(with({"--placed-as", compiled}), 2, "--placed-as belongs to --arithmetic");
    expect_ok({"compare", plain, "--on", "cpu,arithmetic=edgetpu,placed-as=" + compiled, "--on",
               "cpu,kernels=reference,arithmetic=edgetpu,placed-as=" + compiled});
    expect_error({"compare", plain, "--on", "cpu", "--on", "cpu,placed-as=" + compiled}, 2,
                 "--placed-as belongs to --arithmetic");
}

TEST_F(SimulatedRunTest, ArithmeticIsPlacedByNamesThatTheModelLacks) {
    model::Model nameless = test::island_network();
    for (model::Tensor& tensor : nameless.subgraphs[0].tensors) tensor.name.clear();
    const auto plain = write("nameless.tflite", model::write_tflite(nameless).value());
    const std::string compiled = file("compiled.tflite");
    expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify", "-o", compiled});
    std::vector<std::string> words{
        "run",          plain,          "--input", input("1x8x8x8", 512), "--json",
        "--placements", "--arithmetic", "edgetpu", "--placed-as",         compiled};
    const auto placements = nlohmann::json::parse(expect_ok(words))["placements"];
    EXPECT_THAT(placements[0]["reason"].get<std::string>(), HasSubstr("as the Edge TPU"));
    for (const std::size_t left : {1U, 2U})
        EXPECT_THAT(placements[left]["reason"].get<std::string>(),
                    HasSubstr("the compiled model leaves it to the CPU"));
    // Of the same shapes, and of other names.
    words[1] = write("named.tflite", model::write_tflite(test::island_network()).value());
    expect_error(words, 1, compiled + ": it is not compiled from the model that runs");
    words.back() = words[1];
    expect_error(words, 1, "the model is not compiled");
}

TEST_F(SimulatedRunTest, ArithmeticOfDeepLabIsThatOfItsOwnProgram) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string plain = shared / "data/models/deeplabv3_mnv2_dm05_pascal_quant.tflite";
    const std::string compiled = file("compiled.tflite");
    expect_ok({"compile", plain, "--target", "edgetpu", "--no-verify", "-o", compiled});
    const std::string picture = shared / "data/images/bird_segmentation.bmp";
    const std::string vendors = "cpu,arithmetic=edgetpu", own = vendors + ",placed-as=" + compiled;
    const auto result =
        reef_command({"compare", plain, "--on", vendors, "--on", own, "--input", picture});
    EXPECT_EQ(result.exit_code, 1) << "the vendor has less on the chip: " << result.err;
    const std::string of_chip = file("chip"), of_plain = file("plain");
    expect_ok({"run", compiled, "--device", "edgetpu:sim", "--input", picture, "-o", of_chip,
               "--runs", "1"});
    expect_ok({"run", plain, "--arithmetic", "edgetpu", "--placed-as", compiled, "--input", picture,
               "-o", of_plain, "--runs", "1"});
    expect_ok({"compare", of_chip, of_plain});
}

// The chip's LSTM is not TFLite's to the byte, but near it: its tanh is a table of one half.
TEST_F(SimulatedRunTest, RecurrentNetworkIsNearThePlainOne) {
    REEF_SHARED_OR_SKIP(shared);
    const auto network = (shared / "data/models/keras_lstm_mnist_ptq").string();
    for (const char* picture :
         {"cat", "grace_hopper", "sunflower", "squat", "bird_segmentation", "mnist_nine"})
        expect_ok({"compare", network + "_edgetpu.tflite", network + ".tflite", "--input",
                   shared / "data/images" / (std::string(picture) + ".bmp"), "--cosine", "0.96"});
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

// What is said of activations must not speak of parameters.
TEST(Findings, HaveANameForProgramsAndASentenceForPeople) {
    const edgetpu::Finding twice{.kind = edgetpu::FindingKind::read_twice,
                                 .memory = "the activation FIFO",
                                 .address = 0x60f0,
                                 .instruction = "word 0x0061 ring_push",
                                 .other = ""};
    EXPECT_EQ(edgetpu::identifier_of(twice.kind), "read_twice");
    EXPECT_EQ(
        edgetpu::message(twice),
        "reads a second time what known programs read once: the activation FIFO 0x60f0 of the "
        "scalar core, word 0x0061 ring_push");
    using enum edgetpu::FindingKind;
    std::set<std::string_view> names;
    for (const auto kind : {unwritten_read, outside_bound, row_never_read, read_twice,
                            overwritten_unread, left_over, hazard})
        names.insert(edgetpu::identifier_of(kind));
    EXPECT_EQ(names.size(), 7U);
}

TEST_F(SimulatedRunTest, BenchSaysWhatEachKindOfInstructionTakes) {
    REEF_SHARED_OR_SKIP(shared);
    std::vector<std::string> arguments = {
        "bench",    shared / "data/edgetpu/templates/dense_256_edgetpu.tflite",
        "--device", "edgetpu:sim",
        "--runs",   "1",
        "--warmup", "0"};
    const auto text = expect_ok(arguments);
    EXPECT_THAT(text, HasSubstr("cycles by instruction"));
    for (const char* row : {"parameters  infeed", "inference   mac", "inference   ring_pop"})
        EXPECT_THAT(text, HasSubstr(row));
    arguments.insert(arguments.end(), {"--json", "--trace", file("trace.json")});
    const auto chip = nlohmann::json::parse(expect_ok(arguments))["chip_estimate"];
    EXPECT_GT(chip["caching"]["cycles"], 0);
    for (const auto& rows : {chip["instructions"], chip["caching"]["instructions"]}) {
        const auto found = std::ranges::find(rows, "infeed", [](const auto& row) {
            return row["name"].template get<std::string>();
        });
        ASSERT_NE(found, rows.end());
        EXPECT_GT((*found)["count"], 0);
        EXPECT_GT((*found)["busiest_cycles"], 0);
        EXPECT_GE((*found)["all_cycles"], (*found)["busiest_cycles"]);
    }

    const auto trace = nlohmann::json::parse(as_text(read_file(file("trace.json")).value().view()));
    std::set<std::string> lanes;
    std::map<int, double> first, last;
    for (const auto& event : trace["traceEvents"]) {
        const int process = event["pid"];
        if (event["ph"] == "M") {
            lanes.insert(fmt::format("{} {}", process, event["args"]["name"].get<std::string>()));
            continue;
        }
        const double begin = event["ts"], end = begin + event["dur"].get<double>();
        first[process] = first.contains(process) ? std::min(first[process], begin) : begin;
        last[process] = std::max(last[process], end);
    }
    for (const char* lane :
         {"2 Edge TPU, estimated: inference", "3 Edge TPU, estimated: loading the parameters",
          "2 scalar core INFEED", "3 scalar core INFEED", "2 tile 0 OP"})
        EXPECT_TRUE(lanes.contains(lane)) << lane;
    EXPECT_GE(first[2], last[3]) << "parameters are loaded before they are used";
}

TEST_F(SimulatedRunTest, OptionsOfASticksDriverAreRefused) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string model = shared / "data/edgetpu/templates/dense_256_edgetpu.tflite";
    for (const char* verb : {"run", "bench"}) {
        expect_error({verb, model, "--device", "edgetpu:sim", "--input", input("1x256", 256),
                      "--firmware", file("none.bin")},
                     2, "device edgetpu:sim takes no firmware");
        expect_error({verb, model, "--device", "edgetpu:sim:2", "--input", input("1x256", 256),
                      "--standard-clock"},
                     2, "device edgetpu:sim:2 has no clock to throttle");
    }
    expect_error({"debug", model, "--firmware", file("none.bin"), "--script", "-"}, 2,
                 "device edgetpu:sim takes no firmware", {.stdin_text = ""});
    for (const char* option : {"firmware=x", "standard-clock"})
        expect_error(
            {"compare", model, "--on", std::string("edgetpu:sim,") + option, "--on", "cpu"}, 2,
            "is not an option of a device");
}

/// The model with one bit of an instruction of its last executable set.
std::vector<std::byte> with_bit(const std::filesystem::path& path, std::size_t word,
                                std::size_t bit) {
    auto model = model::load_tflite(path.string()).value();
    auto op = std::move(edgetpu::packages_of(model).value().at(0));
    for (auto& executable : op.package.executables) {
        if (executable.type == edgetpu::ExecutableType::parameter_caching) continue;
        const auto view = executable.bitstreams.at(0).instructions.view();
        std::vector<std::byte> bytes(view.begin(), view.end());
        bytes.at(16 * word + bit / 8) |= std::byte{1} << bit % 8;
        executable.bitstreams[0].instructions = SharedBytes::copy_of(bytes);
    }
    auto& changed = model.subgraphs[op.subgraph].operators[op.index];
    EXPECT_TRUE(edgetpu::replace_package(changed, op.package));
    return model::write_tflite(model).value();
}

// The check knows nothing of tables, so nobody is sent to it.
TEST_F(SimulatedRunTest, ATableThatNothingLoadedIsNoMatterOfTheCheck) {
    REEF_SHARED_OR_SKIP(shared);
    constexpr std::size_t mac_word = 0xae, table_bit = 1946;
    const auto bytes =
        with_bit(shared / "data/edgetpu/templates/dense_256_edgetpu.tflite", mac_word, table_bit);
    const auto model = write("table.tflite", std::string(as_text(bytes)));
    const auto result =
        reef_command({"run", model, "--device", "edgetpu:sim", "--input", input("1x256", 256)});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("word 0x00ae mac"));
    EXPECT_THAT(result.err, HasSubstr("applies a table that nothing loaded"));
    EXPECT_THAT(result.err, Not(HasSubstr("--check")));
    EXPECT_THAT(expect_ok({"disasm", model, "--check"}), HasSubstr("all rules kept"));
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
