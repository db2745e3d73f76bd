#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CompareTest : public CommandTest {
  protected:
    std::string a = write_array("a.npy", float_array({2, 2}, {1, 2, 3, 4}));
    std::string same = write_array("same.npy", float_array({2, 2}, {1, 2, 3, 4}));
    std::string near = write_array("near.npy", float_array({2, 2}, {1, 2, 3.5F, 4}));

    [[nodiscard]] std::string archive(const std::string& name, const NamedArrays& members) const {
        return write(name, write_npz(members, Compression::stored).value());
    }
    /// Standard output of a comparison that finds a difference.
    std::string expect_different(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), "compare");
        const auto result = reef_command(arguments);
        EXPECT_EQ(result.exit_code, 1) << result.err;
        EXPECT_EQ(result.err, "");
        return result.out;
    }
};

TEST_F(CompareTest, EqualAndDifferentFiles) {
    EXPECT_THAT(expect_ok({"compare", a, same}), HasSubstr("equal: 1 of 1 tensor equal"));
    const std::string text = expect_different({a, near});
    EXPECT_THAT(text, HasSubstr("different: 0 of 1 tensor equal"));
    EXPECT_THAT(text, HasSubstr("[1,0] 3 against 3.5"));
    EXPECT_THAT(text, HasSubstr("3/4"));
    expect_ok({"compare", a, near, "--tolerance", "0.5"});
    expect_different({a, near, "--tolerance", "0.49"});
}

TEST_F(CompareTest, RelativeToleranceAndCosine) {
    // 3.5 against 3: 0.5 is 1/7 of the second file's 3.5.
    expect_ok({"compare", a, near, "--rtol", "0.15"});
    expect_different({a, near, "--relative-tolerance", "0.14"});
    expect_ok({"compare", a, near, "--rtol", "0.1", "--atol", "0.15"});
    const std::string text = expect_ok({"compare", a, near, "--cosine", "0.99"});
    EXPECT_THAT(text, HasSubstr("with a cosine of 0.99 at least"));
    expect_different({a, near, "--cosine", "0.9999"});
    expect_different({a, near, "--cosine", "0.99", "--atol", "0.4"});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto with_nan = write_array("nan.npy", float_array({2, 2}, {1, 2, nan, 4}));
    expect_different({a, with_nan, "--cosine", "0.1"});
    const float inf = std::numeric_limits<float>::infinity();
    const auto infinite = write_array("inf.npy", float_array({2, 2}, {1, 2, inf, 4}));
    expect_different({a, infinite, "--rtol", "0.5"});
    expect_error({"compare", a, near, "--rtol", "nan"}, 2, "nan is not 0 or more");
    expect_error({"compare", a, near, "--cosine", "2"}, 2, "--cosine");
    expect_error({"compare", a, near, "--cosine", "nan"}, 2, "nan is not -1 to 1");
}

TEST_F(CompareTest, CommaSeparatedValues) {
    EXPECT_THAT(expect_different({a, near, "--csv"}),
                testing::StartsWith(
                    "name,shape,equal,elements,equal_elements,max_abs_diff,mean_abs_diff,mse,"
                    "cosine,nan_a,nan_b,problem\n"));
    const auto both =
        archive("both.npz", {{"x,\"y\"", float_array({1}, {1})}, {"only", float_array({1}, {1})}});
    const auto one = archive(
        "one.npz", {{"x,\"y\"", float_array({1}, {1})}, {"other", float_array({2}, {1, 2})}});
    const std::string text = expect_different({both, one, "--csv"});
    EXPECT_THAT(text, HasSubstr("\n\"x,\"\"y\"\"\",1 f32,1,1,1,0,0,0,1,0,0,\n"));
    EXPECT_THAT(text, HasSubstr("\nonly,1 f32,0,,,,,,,,,only in the first\n"));
    expect_error({"compare", a, near, "--csv", "--json"}, 2, "--csv");
}

TEST_F(CompareTest, JsonHoldsTheNumbers) {
    const auto json = nlohmann::json::parse(expect_different({a, near, "--json"}));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["equal"], false);
    const auto& tensor = json["tensors"][0];
    EXPECT_EQ(tensor["elements"], 4);
    EXPECT_EQ(tensor["equal_elements"], 3);
    EXPECT_EQ(tensor["max_abs_diff"], 0.5);
    EXPECT_EQ(tensor["mean_abs_diff"], 0.125);
    EXPECT_EQ(tensor["mse"], 0.0625);
    EXPECT_EQ(tensor["first_different"], 2);
    EXPECT_GT(tensor["cosine"], 0.99);
}

TEST_F(CompareTest, NanEqualsNanOnly) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::string b = write_array("nan.npy", float_array({2, 2}, {1, nan, 3, 4}));
    EXPECT_THAT(expect_ok({"compare", b, b}), HasSubstr("1/1"));
    const auto json = nlohmann::json::parse(expect_different({a, b, "--tolerance", "9", "--json"}));
    EXPECT_EQ(json["tensors"][0]["nan_a"], 0);
    EXPECT_EQ(json["tensors"][0]["nan_b"], 1);
}

TEST_F(CompareTest, ShapesAndTypesThatDiffer) {
    const std::string flat = write_array("flat.npy", float_array({4}, {1, 2, 3, 4}));
    const std::string bytes = write_array("bytes.npy", byte_array({2, 2}, {1, 2, 3, 4}));
    EXPECT_THAT(expect_different({a, flat}), HasSubstr("different"));
    EXPECT_THAT(expect_different({a, bytes}), HasSubstr("different"));
}

TEST_F(CompareTest, NamesOnOneSideAreDifferences) {
    const Array array = float_array({1}, {1});
    const std::string one = archive("one.npz", {{"x", array}, {"y", array}});
    const std::string two = archive("two.npz", {{"y", array}, {"z", array}, {"w", array}});
    const std::string text = expect_different({one, two});
    EXPECT_THAT(text, HasSubstr("only in the first"));
    EXPECT_THAT(text, HasSubstr("only in the second"));
    EXPECT_THAT(text, HasSubstr("1 of 4 tensors equal"));
    EXPECT_THAT(expect_ok({"compare", one, two, "--common"}), HasSubstr("1 of 1 tensor"));
    const std::string other = archive("other.npz", {{"p", array}, {"q", array}});
    expect_error({"compare", one, other, "--common"}, 1, "no tensor is on both sides");
}

TEST_F(CompareTest, FoldersOfArrays) {
    std::filesystem::create_directory(file("d"));
    std::filesystem::create_directory(file("e"));
    for (const char* name : {"d/x.npy", "e/x.npy", "d/y.npy"}) {
        write_array(name, float_array({1}, {1}));
    }
    EXPECT_THAT(expect_different({file("d"), file("e")}), HasSubstr("only in the first"));
    write_array("e/y.npy", float_array({1}, {1}));
    expect_ok({"compare", file("d"), file("e")});
}

TEST_F(CompareTest, OneModelOnTwoDevices) {
    const std::string text = expect_ok(
        {"compare", two_input_model, "--on", "cpu", "--on", "cpu,kernels=reference,threads=2"});
    EXPECT_THAT(text, HasSubstr("2 of 2 tensors equal"));
    EXPECT_THAT(text, HasSubstr("t0003"));
}

// Halves: TFLite rounds them away from zero, the Edge TPU to even.
TEST_F(CompareTest, TwoArithmetics) {
    model::Builder builder("halves");
    const auto x = builder.input("x", ElementType::uint8, {1, 4}, model::per_tensor(0.5F, 0));
    const auto y = builder.tensor("y", ElementType::uint8, {1, 4}, model::per_tensor(1, 0));
    builder.add(model::Op::quantize, {x}, {y});
    builder.output(y);
    const std::string path =
        write("halves.tflite", model::write_tflite(builder.finish().value()).value());
    const std::string input = write_array("halves.npy", byte_array({1, 4}, {1, 2, 3, 5}));
    const std::string text =
        expect_different({path, "--on", "cpu", "--on", "cpu,arithmetic=edgetpu", "--input", input});
    EXPECT_THAT(text, HasSubstr("[0,0] 1 against 0"));
    expect_ok({"compare", path, "--on", "cpu", "--on", "cpu,arithmetic=edgetpu", "--input", input,
               "--tolerance", "1"});
    EXPECT_THAT(
        expect_ok({"run", path, "--input", input, "--arithmetic", "edgetpu", "--placements"}),
        HasSubstr("as the Edge TPU computes it"));
    expect_error({"compare", path, "--on", "cpu", "--on", "cpu,arithmetic=odd"}, 2,
                 "arithmetic=odd");
    expect_error({"run", path, "--input", input, "--arithmetic", "odd"}, 2, "--arithmetic");
}

TEST_F(CompareTest, TwoModels) {
    EXPECT_THAT(expect_ok({"compare", two_input_model, two_input_model}),
                HasSubstr("equal: 1 of 1 tensor equal"));
    model::Builder builder("the same inputs");
    const auto left = builder.input("left", ElementType::float32, {1, 4});
    const auto right = builder.input("right", ElementType::float32, {1, 4});
    const auto sum = builder.tensor("sum", ElementType::float32, {1, 4});
    builder.add(model::Op::add, {left, right}, {sum}, model::AddOptions{});
    builder.output(sum);
    const auto other = write("sum.tflite", model::write_tflite(builder.finish().value()).value());
    const auto x = write_array("x.npy", float_array({1, 4}, {1, -2, 3, -4}));
    const auto y = write_array("y.npy", float_array({1, 4}, {1, 1, 1, 1}));
    // One has a RELU behind the sum.
    const std::string text = expect_different({two_input_model, other, "--input", x, "--input", y});
    EXPECT_THAT(text, HasSubstr("sum.tflite on cpu"));
    EXPECT_THAT(text, HasSubstr("2/4"));
    expect_error({"compare", two_input_model, other, "--input", x}, 2, "is not given");
}

// Random numbers of two kinds of inputs would be two pictures.
TEST_F(CompareTest, ModelsOfOtherInputsNeedInputs) {
    const auto of_side = [&](std::int32_t side, ElementType type) {
        model::Builder builder("side");
        const auto in = builder.input("in", type, {1, side});
        const auto out = builder.tensor("out", type, {1, side});
        builder.add(model::Op::relu, {in}, {out});
        builder.output(out);
        return write(fmt::format("{}_{}.tflite", side, name_of(type)),
                     model::write_tflite(builder.finish().value()).value());
    };
    const std::string four = of_side(4, ElementType::float32),
                      eight = of_side(8, ElementType::float32);
    expect_error({"compare", four, eight}, 1, "input 0 is 1x8 f32, and 1x4 f32 of " + four);
    expect_error({"compare", four, two_input_model}, 1, "2 inputs, and 1 of " + four);
}

TEST_F(CompareTest, BadInput) {
    expect_error({"compare", a}, 2, "one thing to compare");
    expect_error({"compare", a, same, near}, 2, "near.npy");
    expect_error({"compare", a, same, "--tolerance", "-1"}, 2, "-1 is not 0 or more");
    expect_error({"compare", a, same, "--input", a}, 2, "--on");
    expect_error({"compare", two_input_model, "--on", "cpu"}, 2, "not twice");
    expect_error({"compare", two_input_model, a, "--on", "cpu", "--on", "cpu"}, 2, "one model");
    expect_error({"compare", two_input_model, "--on", "cpu", "--on", "tpu"}, 2,
                 "'tpu' is not a device");
    // A chip that this build does not know is no device of its.
    expect_error({"compare", two_input_model, "--on", "cpu", "--on", "vpu:rknpu"}, 2,
                 "'vpu:rknpu' is not a device");
    expect_error({"compare", two_input_model, "--on", "cpu", "--on", "cpu,kernels=odd"}, 2,
                 "kernels=odd");
    expect_error({"compare", two_input_model, "--on", "cpu", "--on", "cpu", "--input", a}, 1,
                 "holds 2x2 float32");
    expect_error({"compare", a, file("none.npy")}, 1, "none.npy");
    expect_error({"compare", a, write("empty.npy", "")}, 1, "empty");
    expect_error({"compare", a, write("text.npy", "words")}, 1, "text.npy");
    expect_error({"compare", a, archive("none.npz", {})}, 1, "no members");
    std::filesystem::create_directory(file("folder"));
    expect_error({"compare", a, file("folder")}, 1, "holds no .npy files");
}

TEST_F(CompareTest, LayersOfACompiledModel) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string plain = shared / "data/edgetpu/templates/gabor_64x64_p4.tflite";
    const std::string compiled = shared / "data/edgetpu/templates/gabor_64x64_p4_edgetpu.tflite";
    EXPECT_THAT(expect_ok({"compare", compiled, plain, "--layers"}),
                HasSubstr("equal: 3 of 3 tensors equal"));
    const auto json =
        nlohmann::json::parse(expect_ok({"compare", compiled, plain, "--layers", "--json"}));
    EXPECT_EQ(json["tensors"][0]["layer"], "layer_000");
    EXPECT_EQ(json["tensors"][0]["matched_by"], "values");
    EXPECT_THAT(json["tensors"][0]["instructions"][0].get<std::string>(), HasSubstr("mac"));
    EXPECT_EQ(json["first_different_tensor"], nullptr);
    EXPECT_TRUE(json["not_compared"].empty());
    EXPECT_TRUE(json["operators_without_layer"].empty());
    expect_error({"compare", compiled, "--layers"}, 2, "--layers takes");
    expect_error({"compare", plain, compiled, "--layers"}, 1, "no operator compiled");
}

TEST_F(CompareTest, NamesTheFirstLayerThatDiffers) {
    REEF_SHARED_OR_SKIP(shared);
    // Another bias for one channel of the plain model's only convolution with weights.
    const std::string path = shared / "data/edgetpu/templates/gabor_64x64_p4";
    auto plain = model::load_tflite(path + ".tflite").value();
    const auto& graph = plain.subgraphs[0];
    const auto layer = std::ranges::find_if(
        graph.operators, [](const model::Operator& op) { return op.inputs.size() == 3; });
    ASSERT_NE(layer, graph.operators.end());
    const auto bias = layer->inputs[2];
    auto& buffer = plain.buffers[graph.tensors[static_cast<std::size_t>(bias)].buffer];
    std::vector<std::byte> bytes(buffer.view().begin(), buffer.view().end());
    bytes[1] ^= std::byte{0x40};
    buffer = SharedBytes::copy_of(bytes);
    const std::string other = write("other.tflite", model::write_tflite(plain).value());
    const std::string text = expect_different({path + "_edgetpu.tflite", other, "--layers"});
    EXPECT_THAT(text, HasSubstr("first layer that differs: t"));
    EXPECT_THAT(text, HasSubstr("layer_000, word 0x"));
    const auto json = nlohmann::json::parse(
        expect_different({path + "_edgetpu.tflite", other, "--layers", "--json"}));
    EXPECT_EQ(json["first_different_tensor"], json["tensors"][0]["name"]);
}

}  // namespace
}  // namespace reef::tool
