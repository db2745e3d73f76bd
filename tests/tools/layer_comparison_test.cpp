// reef compare --layers and run --dump-layers --like on compiled models with one wrong instruction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "command.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// `text` of the instruction at `address` ("0x05ac") becomes `other`.
struct Edit {
    std::string address, text, other;
};

/// The program with the edit, in the text form.
std::string edited(std::string program, const Edit& edit) {
    const auto line = program.find(edit.address + ": ");
    const auto end = program.find('\n', line);
    const auto at = program.find(edit.text, line);
    EXPECT_LT(at, end) << edit.address << " has no " << edit.text;
    return program.replace(at, edit.text.size(), edit.other);
}

class LayerComparisonTest : public CommandTest {
  protected:
    /// A file of the compiled model with one instruction of its first bitstream edited.
    std::string with_edit(const std::string& compiled, const Edit& edit) const {
        auto model = model::load_tflite(compiled).value();
        auto& op = model.subgraphs.front().operators.front();
        auto package = edgetpu::package_of(op).value();
        auto& stream = package.find(edgetpu::ExecutableType::execution_only)->bitstreams.front();
        const std::string text =
            edgetpu::disassemble(stream.instructions.view(), {.symbolic = true});
        const auto bytes = edgetpu::assemble(edited(text, edit));
        EXPECT_TRUE(bytes) << bytes.error().message();
        stream.instructions = SharedBytes::copy_of(*bytes);
        EXPECT_TRUE(edgetpu::replace_package(op, package));
        return write("edited.tflite", model::write_tflite(model).value());
    }

    /// Standard output of `reef compare A B --layers`, which ends with 1.
    static std::string expect_different(const std::string& compiled, const std::string& plain,
                                        std::vector<std::string> more = {}) {
        std::vector<std::string> arguments = {"compare", compiled, plain, "--layers"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const auto result = reef_command(arguments);
        EXPECT_EQ(result.exit_code, 1) << result.err;
        EXPECT_EQ(result.err, "");
        return result.out;
    }

    static nlohmann::json different(const std::string& compiled, const std::string& plain) {
        return nlohmann::json::parse(expect_different(compiled, plain, {"--json"}));
    }
};

TEST_F(LayerComparisonTest, OutputsCountWhereNoLayerDiffers) {
    REEF_SHARED_OR_SKIP(shared);
    // The last step of SOFTMAX, which is no layer of the plain model.
    const std::string path = shared / "data/models/mobilenet_v1_0.25_128_quant";
    const auto wrong =
        with_edit(path + "_edgetpu.tflite", {"0x28b7", "scale=1.1921416e-07", "scale=6e-08"});
    const std::string text = expect_different(wrong, path + ".tflite");
    EXPECT_THAT(text, HasSubstr("outputs differ; the layers that were compared are equal"));
    EXPECT_THAT(text, HasSubstr("the last equal layer: "));
    EXPECT_THAT(text, Not(HasSubstr("no layer is")));
    const auto json = different(wrong, path + ".tflite");
    EXPECT_EQ(json["first_different_tensor"], "out0");
    EXPECT_EQ(json["first_difference"]["layer"], nullptr);
}

// The vendor's program and Reef's: what comes out of the LSTM at all steps, its states and what is
// behind it.
TEST_F(LayerComparisonTest, RecurrentLayersAreComparedWithTheirStates) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = shared / "data/models/keras_lstm_mnist_ptq";
    const std::string own = file("own_edgetpu.tflite");
    expect_ok({"compile", path + ".tflite", "--target", "edgetpu", "--no-verify", "-o", own});
    const std::string digit =
        write_array("digit.npy", byte_array({1, 28, 28}, std::vector<std::uint8_t>(28 * 28, 9)));
    for (const std::string& compiled : {path + "_edgetpu.tflite", own}) {
        SCOPED_TRACE(compiled);
        const auto json = nlohmann::json::parse(
            expect_ok({"compare", compiled, path + ".tflite", "--layers", "--json"}));
        EXPECT_EQ(json["equal"], true);
        EXPECT_THAT(json["operators_without_layer"], IsEmpty());
        std::map<std::string, std::string> how;
        for (const auto& tensor : json["tensors"]) how[tensor["name"]] = tensor["matched_by"];
        EXPECT_EQ(how["t0024"], "equal values");
        EXPECT_EQ(how["t0026"], "values");
        for (const char* name : {"op0_state0", "op0_state1", "out0"})
            EXPECT_EQ(how[name], "output") << name;
        const std::string dump = file("dump");
        EXPECT_THAT(expect_ok({"run", compiled, "--device", "edgetpu:sim", "--input", digit,
                               "--dump-layers", dump, "--like", path + ".tflite"}),
                    HasSubstr("in " + dump));
        EXPECT_TRUE(exists("dump/t0026.npy"));
    }
}

TEST_F(LayerComparisonTest, LayersCountBehindOnesThatAreNotFound) {
    REEF_SHARED_OR_SKIP(shared);
    // Convolution 18 reads 4 KiB behind its input: what it reads lies on no grid, nor does what
    // reads it, up to the last layer, which is one pixel wherever that is.
    const std::string path = shared / "data/models/mobilenet_v1_0.25_128_quant";
    const auto wrong = with_edit(path + "_edgetpu.tflite", {"0x05ac", "in=0x800[", "in=0x1800["});
    const std::string text = expect_different(wrong, path + ".tflite");
    EXPECT_THAT(text, HasSubstr("different: 18 of 20 tensors equal"));
    EXPECT_THAT(text, HasSubstr("first layer that differs: t0086 "));
    EXPECT_THAT(text, HasSubstr("the first that may be wrong: operator 18 CONV_2D\n"));
    EXPECT_THAT(text, HasSubstr("by its place it is layer_018, word 0x05ac mac: 24 reads do not"));
    EXPECT_THAT(text, HasSubstr("the last equal layer before it: t0065 layer_017, word 0x"));
    const auto json = different(wrong, path + ".tflite");
    EXPECT_EQ(json["equal"], false);
    EXPECT_EQ(json["first_different_tensor"], "t0086");
    EXPECT_EQ(json["tensors"].back()["matched_by"], "output");
    EXPECT_EQ(json["tensors"].back()["equal"], false);
    EXPECT_EQ(json["tensors"].back()["layer"], nullptr);
    EXPECT_EQ(json["first_difference"]["last_equal_tensor"], "t0065");
    EXPECT_EQ(json["first_difference"]["operators_without_layer_before"][0], "operator 18 CONV_2D");
    EXPECT_THAT(json["first_difference"]["not_compared_before"], Contains("layer_018"));
    EXPECT_EQ(json["first_difference"]["layer_by_place"], "layer_018");
    EXPECT_EQ(json["not_compared"][0]["operator_by_place"], "operator 18 CONV_2D");
    EXPECT_THAT(json["operators_without_layer"], Contains("operator 26 CONV_2D"));
}

TEST_F(LayerComparisonTest, AWrongScaleIsTheFirstDifference) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = shared / "data/models/mobilenet_v1_0.25_128_quant";
    const auto wrong =
        with_edit(path + "_edgetpu.tflite", {"0x05ac", "scale=0.011091441", "scale=0.0112024"});
    const std::string text = expect_different(wrong, path + ".tflite");
    EXPECT_THAT(text, HasSubstr("first layer that differs: t0067 "));
    EXPECT_THAT(text, HasSubstr("layer_018, word 0x05ac mac, matched by place\n"
                                "  scale 0.0112024, the plain model's 0.011091441\n"));
    EXPECT_THAT(text, Not(HasSubstr("no layer is")));
    const auto json = different(wrong, path + ".tflite");
    EXPECT_EQ(json["first_different_tensor"], "t0067");
    const auto& tensor = json["tensors"][18];
    EXPECT_EQ(tensor["matched_by"], "place");
    EXPECT_EQ(tensor["different_values"][0]["field"], "scale");
    EXPECT_NEAR(tensor["different_values"][0]["program"].get<double>(), 0.0112024, 1e-7);
    EXPECT_NEAR(tensor["different_values"][0]["plain_model"].get<double>(), 0.0110914, 1e-7);
    EXPECT_THAT(json["first_difference"]["not_compared_before"], IsEmpty());
}

TEST_F(LayerComparisonTest, SaysWhatWasNotComparedBeforeTheFirstDifference) {
    REEF_SHARED_OR_SKIP(shared);
    // The first layer of the program, a copy of pixels, is no tensor of the plain model.
    const std::string path = shared / "data/edgetpu/templates/color_red_64x64";
    const auto wrong =
        with_edit(path + "_edgetpu.tflite", {"0x0c69", "out_zero=86", "out_zero=90"});
    const auto json = different(wrong, path + ".tflite");
    EXPECT_EQ(json["first_difference"]["tensor"], json["first_different_tensor"]);
    EXPECT_THAT(json["first_difference"]["not_compared_before"], Contains("layer_001"));
    EXPECT_THAT(expect_different(wrong, path + ".tflite"),
                HasSubstr("before it, not compared: layer_001, "));
}

TEST_F(LayerComparisonTest, OutputsOfAnUnchangedModelAreEqual) {
    REEF_SHARED_OR_SKIP(shared);
    // Most of its layers are steps of SOFTMAX and no tensors of the plain model.
    const std::string path = shared / "data/edgetpu/templates/bright_16x16";
    const auto json = nlohmann::json::parse(
        expect_ok({"compare", path + "_edgetpu.tflite", path + ".tflite", "--layers", "--json"}));
    EXPECT_EQ(json["equal"], true);
    EXPECT_EQ(json["tensors"].back()["name"], "out0");
    EXPECT_THAT(json["not_compared"], Not(IsEmpty()));
    EXPECT_EQ(json["first_difference"], nullptr);
}

TEST_F(LayerComparisonTest, RefusesWhatIsNotThePlainModel) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = shared / "data/edgetpu/templates/gabor_64x64_p4";
    const std::string compiled = path + "_edgetpu.tflite";
    const std::string other = shared / "data/edgetpu/templates/dense_256.tflite";
    const std::string outputs = shared / "data/edgetpu/templates/looming_64x64_3x3.tflite";
    const std::string zeros =
        write_array("zeros.npy", byte_array({1, 64, 64, 1}, std::vector<std::uint8_t>(4096)));
    const auto refused = [&](const std::string& plain, const std::string& words) {
        expect_error({"compare", compiled, plain, "--layers"}, 1, words);
        expect_error({"run", compiled, "--device", "edgetpu:sim", "--input", zeros, "--dump-layers",
                      file("layers"), "--like", plain},
                     1, words);
    };
    refused(other, "its inputs are not those of the compiled model");
    refused(outputs, "its outputs are not those of the compiled model");
    refused(compiled, "it is compiled for the Edge TPU itself");
}

TEST_F(LayerComparisonTest, TheCompiledModelComesFirst) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = shared / "data/edgetpu/templates/gabor_64x64_p4";
    expect_error({"compare", path + ".tflite", path + "_edgetpu.tflite", "--layers"}, 1,
                 "the first file must be the compiled one");
    expect_error({"compare", path + ".tflite", path + "_edgetpu.tflite", "--layers"}, 1,
                 "swap them");
    expect_error({"compare", path + ".tflite", path + ".tflite", "--layers"}, 1,
                 "give the file that the Edge TPU or RK3588 compiler wrote");
}

}  // namespace
}  // namespace reef::tool
