#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "outputs/interpretation.h"
#include "pictures/image.h"
#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunTest : public CommandTest {
  protected:
    const std::vector<std::uint8_t> pixels = {0, 10, 20, 30, 40, 250, 60, 70, 80, 90, 100, 110};
    std::string picture = write("picture.png", encode_png(2, 2, pixels).value());
    std::string left = write_array("left.npy", float_array({1, 4}, {1, 2, -3, 4}));
    std::string right = write_array("right.npy", float_array({1, 4}, {10, 20, -30, 40}));

    [[nodiscard]] Array read_array(const std::string& name) const {
        return read_npy(read_file(file(name)).value().view()).value();
    }
};

TEST_F(RunTest, TheCpuIsNoNpu) {
    expect_error({"run", picture_model, "--input", picture, "--require-npu"}, 2,
                 "device cpu is no NPU, and one is required");
}

TEST_F(RunTest, TopMakesClassesOfWhatOnlyLooksLikeThem) {
    const std::string text = expect_ok({"run", picture_model, "--input", picture, "--top", "1"});
    EXPECT_THAT(text, HasSubstr("0.9804      5"));
    EXPECT_THAT(expect_ok({"run", picture_model, "--input", picture}), Not(HasSubstr("class")));
}

TEST_F(RunTest, LabelsAPicture) {
    const std::string labels = write("labels.txt",
                                     "a\nb\nc\nd\ne\nthe brightest\r\ng\nh\ni\nj\n"
                                     "k\nl\n\nremarks after an empty line\n");
    const std::string text =
        expect_ok({"run", picture_model, "--input", picture, "--labels", labels, "--top", "2"});
    EXPECT_THAT(text, HasSubstr("0.9804      5  the brightest\n"));
    EXPECT_THAT(text, HasSubstr("0.4314     11  l\n"));
    EXPECT_THAT(text, HasSubstr("per inference"));
    EXPECT_THAT(text, HasSubstr("1 operator on cpu: 1 reshape"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST_F(RunTest, JsonHoldsTheSame) {
    const auto json = nlohmann::json::parse(
        expect_ok({"run", picture_model, "--input", picture, "--top", "1", "--json"}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["outputs"][0]["name"], "scores");
    EXPECT_EQ(json["outputs"][0]["shape"], (std::vector<int>{1, 12}));
    EXPECT_EQ(json["outputs"][0]["top"][0]["class"], 5);
    EXPECT_NEAR(json["outputs"][0]["top"][0]["score"], 250 / 255.0, 1e-6);
    EXPECT_EQ(json["placements"][0]["device"], "cpu");
    EXPECT_GT(json["time"]["median_s"], 0);
}

TEST_F(RunTest, WritesOutputsAndEveryTensor) {
    expect_ok({"run", two_input_model, "--input", left, "--input", right, "--out", file("o"),
               "--dump-all", file("d")});
    EXPECT_EQ(read_array("o/out0.npy"), float_array({1, 4}, {11, 22, 0, 44}));
    EXPECT_EQ(read_array("d/t0002.npy"), float_array({1, 4}, {11, 22, -33, 44}));
    EXPECT_EQ(read_array("d/t0003.npy"), float_array({1, 4}, {11, 22, 0, 44}));
    EXPECT_FALSE(exists("d/t0000.npy"));
    expect_ok({"compare", file("o/out0.npy"), file("d/t0003.npy")});
}

TEST_F(RunTest, InputsByNameByPositionAndFromArchives) {
    const Array expected = float_array({1, 4}, {1, 2, 0, 4});
    const std::string zero = write_array("zero.npy", float_array({1, 4}, {0, 0, 0, 0}));
    const auto archive = [&](const std::string& name, const NamedArrays& members) {
        return write(name, write_npz(members, Compression::deflated).value());
    };
    const Array values = float_array({1, 4}, {1, 2, -3, 4});
    const Array zeros = float_array({1, 4}, {0, 0, 0, 0});
    const std::string named = archive("n.npz", {{"right", values}, {"left", zeros}, {"x", zeros}});
    const std::string numbered = archive("k.npz", {{"in1", zeros}, {"in0", values}});
    const std::string single = archive("s.npz", {{"anything", values}});
    const std::string raw = write("raw.bin", values.data);
    const std::vector<std::vector<std::string>> forms = {
        {"--input", "right=" + zero, "--input", left},
        {"--input", "in1=" + left, "--input", zero},
        {"--input", named},
        {"--input", numbered},
        {"--input", single, "--input", "right=" + zero},
        {"--input", "1x4xf32=@" + raw, "--input", zero},
        {"--input", "right=1x4xfloat32=@" + raw, "--input", zero}};
    for (const auto& form : forms) {
        std::vector<std::string> arguments = {"run", two_input_model, "--out", file("out")};
        arguments.insert(arguments.end(), form.begin(), form.end());
        expect_ok(arguments);
        EXPECT_EQ(read_array("out/out0.npy"), expected) << form[1];
    }
}

TEST_F(RunTest, StandardInputIsAnArray) {
    const SharedBytes npy = read_file(left).value();
    const test::ProcessOptions from_left{.stdin_text = std::string(as_text(npy.view()))};
    EXPECT_THAT(expect_ok({"run", two_input_model, "--input", "-", "--input", right}, from_left),
                HasSubstr("from 0 to 44; first values 11 22 0 44"));
    expect_error({"run", two_input_model, "--input", "-", "--input", "-"}, 2,
                 "standard input can be read once", from_left);
}

TEST_F(RunTest, MistakesInTheCommandLine) {
    expect_error({"run"}, 2, "MODEL");
    expect_error({"run", picture_model, "--top", "0"}, 2, "--top");
    expect_error({"run", picture_model, "--kernels", "slow"}, 2, "--kernels");
    expect_error({"run", picture_model, "--threads", "0"}, 2, "--threads");
    expect_error({"run", picture_model, "--nonsense"}, 2, "--nonsense");
    expect_error({"run", picture_model}, 2, "input 0 'image', 1x2x2x3 uint8 is not given");
    expect_error({"run", two_input_model, "--input", left}, 2, "input 1 'right', 1x4 float32");
    expect_error({"run", picture_model, "--input", picture, "--input", picture}, 2,
                 "one --input too many");
    expect_error({"run", two_input_model, "--input", "left=" + left, "--input", "left=" + left}, 2,
                 "'left', 1x4 float32: is given twice");
    expect_error({"run", two_input_model, "--input", "middle=" + left}, 2, "'middle'");
    expect_error({"run", two_input_model, "--input", "1x4xq8=@" + left}, 2, "'q8'");
}

TEST_F(RunTest, Devices) {
    expect_error({"run", picture_model, "--input", picture, "--device", "gpu"}, 2,
                 "'gpu' is not a device");
    expect_error({"run", picture_model, "--input", picture, "--device", "edgetpu:usb"}, 1,
                 "no operator compiled for edgetpu:usb");
}

TEST_F(RunTest, ModelsThatCannotBeRead) {
    expect_error({"run", file("none.tflite")}, 1, "none.tflite");
    expect_error({"run", write("empty.tflite", "")}, 1, "empty.tflite");
    expect_error({"run", picture}, 1, "picture.png");
}

TEST_F(RunTest, OperatorsWithoutAKernelAreNamedAtOnce) {
    constexpr std::int32_t where = 109, unique = 103;
    model::Builder builder("chain");
    auto x = builder.input("x", ElementType::float32, {2});
    for (const std::int32_t number : {where, unique, where}) {
        const auto y = builder.tensor("y", ElementType::float32, {2});
        builder.add(static_cast<model::Op>(number), {x}, {y});
        x = y;
    }
    builder.output(x);
    const auto model = write("chain.tflite", model::write_tflite(builder.finish().value()).value());
    expect_error({"run", model}, 1,
                 "nothing here runs WHERE (2, the first is operator 0), UNIQUE (operator 1)");
    expect_error({"run", model}, 1, "reef ops");
}

TEST_F(RunTest, WeightsMayBeOfFloat16) {
    model::Builder builder("halves");
    const auto in = builder.input("in", ElementType::float32, {1, 4});
    const std::vector<std::uint16_t> halves{0x3C00, 0, 0, 0xC000, 0, 0x3800, 0x3800, 0};
    const auto stored =
        builder.constant<std::uint16_t>("stored", ElementType::float16, {2, 4}, halves);
    const auto weights = builder.tensor("weights", ElementType::float32, {2, 4});
    builder.add(model::Op::dequantize, {stored}, {weights});
    const auto out = builder.tensor("out", ElementType::float32, {1, 2});
    builder.add(model::Op::fully_connected, {in, weights, model::absent_tensor}, {out},
                model::FullyConnectedOptions{});
    builder.output(out);
    const auto model = write("half.tflite", model::write_tflite(builder.finish().value()).value());
    for (const std::string kernels : {"fast", "reference"}) {
        expect_ok({"run", model, "--input", left, "--kernels", kernels, "--output", file(kernels)});
        // (1, 2, -3, 4) times the weights (1, 0, 0, -2) and (0, 1/2, 1/2, 0).
        EXPECT_TRUE(read_array(kernels + "/out0.npy") == float_array({1, 2}, {-7, -0.5F}));
    }
}

TEST_F(RunTest, TheAxisOfBatchesMayBeMissing) {
    const auto scores = [&](const std::string& input) {
        const std::string out = file("scores");
        expect_ok({"run", picture_model, "--input", input, "--output", out});
        return read_file(out + "/out0.npy").value();
    };
    const auto whole = scores(write_array("whole.npy", byte_array({1, 2, 2, 3}, pixels)));
    EXPECT_TRUE(whole == scores(write_array("one.npy", byte_array({2, 2, 3}, pixels))));
    EXPECT_TRUE(whole == scores(write_array("more.npy", byte_array({1, 1, 2, 2, 3}, pixels))));
    const auto raw = std::as_bytes(std::span(pixels));
    EXPECT_TRUE(whole == scores("2x2x3xu8=@" + write("raw.bin", Bytes(raw))));
    expect_error({"run", picture_model, write_array("flat.npy", byte_array({12}, pixels))}, 1,
                 "holds 12 uint8, the input needs 1x2x2x3 uint8");
    expect_error({"run", picture_model, write_array("two.npy", byte_array({2, 1, 2, 3}, pixels))},
                 1, "holds 2x1x2x3 uint8, the input needs 1x2x2x3 uint8");
}

TEST_F(RunTest, LabelsMayHaveTheNumbersOfTheirClasses) {
    const auto told = [&](const std::string& labels) {
        return expect_ok({"run", picture_model, picture, "--top", "12", "--labels",
                          write("labels.txt", labels)});
    };
    std::string numbered;
    for (int i = 0; i < 12; ++i) numbered += fmt::format("{}  animal {}\n", i, 'a' + i);
    const std::string all = told(numbered);
    EXPECT_THAT(all, HasSubstr("animal 97"));
    EXPECT_THAT(all, Not(HasSubstr("0  0  animal")));
    EXPECT_THAT(told("0: first\n11: last\n"), HasSubstr("last"));
    // Names that only look like it.
    std::string names;
    for (int i = 0; i < 12; ++i) names += fmt::format("{} metres\n", 100 - i);
    EXPECT_THAT(told(names), HasSubstr("100 metres"));
}

TEST_F(RunTest, ArraysThatDoNotFit) {
    const auto run_with = [&](const std::string& input, const std::string& words) {
        expect_error({"run", picture_model, "--input", input, "--out", file("out")}, 1, words);
    };
    run_with(write_array("shape.npy", byte_array({1, 2, 2, 1}, {1, 2, 3, 4})),
             "holds 1x2x2x1 uint8, the input needs 1x2x2x3 uint8");
    run_with(write_array("type.npy", float_array({1, 2, 2, 3}, std::vector<float>(12))),
             "holds 1x2x2x3 float32, the input needs 1x2x2x3 uint8");
    run_with(file("none.npy"), "none.npy");
    run_with(write("empty.npy", ""), "empty");
    run_with(write("text.npy", "words"), "not a file that reef reads");
    run_with(write("cut.npy", "\x93NUMPY\x01"), "cut.npy");
    run_with(write("none.npz", write_npz({}, Compression::stored).value()), "no members");
    const Array array = byte_array({1, 2, 2, 3}, pixels);
    run_with(
        write("other.npz", write_npz({{"a", array}, {"b", array}}, Compression::stored).value()),
        "no member of the .npz file is named as an input");
    run_with("1x2x2x3xu8=@" + write("short.bin", "12345"), "holds 5 bytes");
    run_with("1x2x2x1xu8=@" + write("four.bin", "1234"), "holds 1x2x2x1 uint8");
}

TEST_F(RunTest, PicturesThatCannotBeRead) {
    const auto run_with = [&](const std::string& input, const std::string& words) {
        expect_error({"run", picture_model, "--input", input, "--out", file("out")}, 1, words);
    };
    const std::vector<std::byte> png = encode_png(2, 2, pixels).value();
    run_with(write("cut.png", Bytes(png).first(50)), "unreadable PNG");
    run_with(write("cut.jpg", "\xFF\xD8\xFF\xE0"), "unreadable JPEG");
    run_with(write("cut.bmp", "BM"), "BMP header");
    std::vector<std::byte> huge = png;
    huge[16] = huge[20] = std::byte{0x10};
    run_with(write("huge.png", huge), "PNG");
    expect_error({"run", two_input_model, "--input", picture}, 1, "a picture does not fit");
}

TEST_F(RunTest, LabelsThatDoNotFit) {
    const auto run_with = [&](const std::string& labels, const std::string& words) {
        expect_error({"run", picture_model, "--input", picture, "--labels", labels}, 1, words);
    };
    run_with(write("two.txt", "a\nb\n"), "2 labels for the 12 classes of output 'scores'");
    run_with(write("empty.txt", ""), "holds no labels");
    run_with(file("none.txt"), "none.txt");
}

TEST_F(RunTest, FoldersThatCannotBeWritten) {
    const auto run_with = [&](const std::string& flag, const std::string& folder) {
        expect_error({"run", picture_model, "--input", picture, flag, folder}, 1, folder);
    };
    for (const char* flag : {"--out", "--dump-all"}) {
        run_with(flag, picture);
        run_with(flag, file("missing/parent"));
        run_with(flag, "/proc/reef");
    }
}

TEST_F(RunTest, StandardOutputThatFails) {
    expect_error({"run", picture_model, "--input", picture}, 1, "standard output",
                 {.stdout_path = "/dev/full"});
    const auto quiet =
        reef_command({"run", picture_model, "--input", picture}, {.close_stdout_reader = true});
    EXPECT_EQ(quiet.exit_code, 0);
    EXPECT_EQ(quiet.err, "");
}

TEST_F(RunTest, WritesTheLayersOfACompiledModel) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = shared / "data/edgetpu/templates/gabor_64x64_p4";
    const std::string zeros =
        write_array("zeros.npy", byte_array({1, 64, 64, 1}, std::vector<std::uint8_t>(4096)));
    const std::vector<std::string> run = {
        "run", path + "_edgetpu.tflite", "--device", "edgetpu:sim", "--input", zeros, "--runs",
        "1"};
    const auto with = [&run](std::vector<std::string> more) {
        more.insert(more.begin(), run.begin(), run.end());
        return more;
    };
    EXPECT_THAT(expect_ok(with({"--dump-layers", file("l")})), HasSubstr("2 of 2 layers in "));
    EXPECT_EQ(read_array("l/layer_001.npy").type, ElementType::uint8);
    const auto json = nlohmann::json::parse(
        expect_ok(with({"--dump-layers", file("chip"), "--like", path + ".tflite", "--json"})));
    EXPECT_EQ(json["layers"][0]["matched_by"], "values");
    EXPECT_EQ(json["layers"][0]["tiles"], 0xffff);
    expect_ok({"run", path + ".tflite", "--arithmetic", "edgetpu", "--input", zeros, "--dump-all",
               file("cpu")});
    EXPECT_THAT(expect_ok({"compare", file("chip"), file("cpu"), "--common"}),
                HasSubstr("2 of 2 tensors equal"));
    expect_error(with({"--like", path + ".tflite"}), 2, "--like belongs");
    expect_error({"run", path + ".tflite", "--input", zeros, "--dump-layers", file("no")}, 2,
                 "add --device edgetpu:sim");
}

TEST(OutputMeaning, ProbabilitiesBehindAnOperatorThatCannotBeSeenIntoAreClasses) {
    const auto certain = [](ElementType type, float scale, std::int64_t zero_point) {
        model::Builder builder("classes");
        const auto in = builder.input("in", ElementType::uint8, {1, 4});
        const auto out = builder.tensor("out", type, {1, 4}, model::per_tensor(scale, zero_point));
        builder.add_custom("compiled", {in}, {out}, {});
        builder.output(out);
        const auto model = builder.finish().value();
        const OutputMeaning meaning = meaning_of(model.subgraphs.front(), out);
        EXPECT_EQ(meaning.kind, OutputKind::classes);
        return meaning.certain;
    };
    EXPECT_TRUE(certain(ElementType::uint8, 1.0F / 256, 0));
    EXPECT_TRUE(certain(ElementType::int8, 1.0F / 256, -128));
    EXPECT_FALSE(certain(ElementType::int8, 1.0F / 256, 0));
    EXPECT_FALSE(certain(ElementType::uint8, 1.0F / 256, 3));
    EXPECT_FALSE(certain(ElementType::uint8, 1.0F / 128, 0));
}

}  // namespace
}  // namespace reef::tool
