// reef inspect on compiled models: what runs on the chip, what does not, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "edgetpu/package/small_packages.h"
#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class InspectEdgetpuTest : public CommandTest {
  protected:
    /// image -> chip -> RESHAPE -> chip -> DEQUANTIZE -> RELU -> result
    static model::Model two_part_model() {
        const model::Operator op = edgetpu::test::compiled_operator(edgetpu::test::rich_package());
        const Bytes options = op.custom_options.view();
        model::Builder b("two compiled parts");
        const auto q = model::per_tensor(0.5F, 1);
        const auto image = b.input("image", ElementType::uint8, {1, 24}, q);
        const auto first = b.tensor("first", ElementType::uint8, {1, 24}, q);
        const auto shaped = b.tensor("shaped", ElementType::uint8, {24}, q);
        const auto second = b.tensor("second", ElementType::uint8, {24}, q);
        const auto real = b.tensor("real", ElementType::float32, {24});
        const auto result = b.tensor("result", ElementType::float32, {24});
        b.add_custom(op.code.custom, {image}, {first}, options);
        b.add(model::Op::reshape, {first}, {shaped}, model::ReshapeOptions{{24}});
        b.add_custom(op.code.custom, {shaped}, {second}, options);
        b.add(model::Op::dequantize, {second}, {real});
        b.add(model::Op::relu, {real}, {result});
        b.output(result);
        return b.finish().value();
    }
    std::string save(const std::string& name, const model::Model& model) {
        return write(name, Bytes(model::write_tflite(model).value()));
    }
};

TEST_F(InspectEdgetpuTest, PlainModelsAreNotCompiled) {
    EXPECT_THAT(expect_ok({"inspect", picture_model}),
                HasSubstr("edge tpu     not compiled for the Edge TPU; reef compile MODEL"));
    const auto json = Json::parse(expect_ok({"inspect", picture_model, "--json"}));
    EXPECT_EQ(json["edgetpu"]["compiled"], false);
    EXPECT_THAT(json["edgetpu"]["hint"].get<std::string>(), HasSubstr("reef compile MODEL"));
    EXPECT_FALSE(json["subgraphs"][0]["operators"][0].contains("runs_on"));
}

TEST_F(InspectEdgetpuTest, SeveralCompiledParts) {
    const std::string path = save("two.tflite", two_part_model());
    const std::string text = expect_ok({"inspect", path});
    EXPECT_THAT(text, Not(HasSubstr("not compiled")));
    EXPECT_THAT(text, HasSubstr("Edge TPU subgraph 0: operator 0 edgetpu-custom-op"));
    EXPECT_THAT(text, HasSubstr("Edge TPU subgraph 0: operator 2 edgetpu-custom-op"));
    EXPECT_THAT(text, HasSubstr("transfer      in         input image"));
    EXPECT_THAT(text, HasSubstr("2x3x4 SIGNED_FIXED_POINT8  scale 0.5, zero point 127  24 B, in "
                                "parts of 2 tiles, 2 times per inference"));
    const auto json = Json::parse(expect_ok({"inspect", path, "--json"}));
    const auto& operators = json["subgraphs"][0]["operators"];
    EXPECT_EQ(operators[0]["runs_on"], "edgetpu");
    EXPECT_EQ(operators[1]["runs_on"], "cpu");
    EXPECT_THAT(operators[1]["reason"].get<std::string>(), HasSubstr("left out by the compiler"));
    EXPECT_EQ(operators[2]["runs_on"], "edgetpu");
    EXPECT_EQ(operators[3]["reason"],
              "the Edge TPU compiler's documentation does not list this operator");
    EXPECT_EQ(operators[4]["reason"], "takes f32; the chip computes in 8 bits");
    ASSERT_EQ(json["edgetpu"]["packages"].size(), 2U);
    const auto& package = json["edgetpu"]["packages"][1];
    EXPECT_EQ(package["operator"], 2);
    EXPECT_EQ(package["parameter_memory"]["cached_bytes"], 100);
    EXPECT_EQ(package["parameter_memory"]["streamed_bytes"], 100);
    const auto& executable = package["executables"][0];
    EXPECT_EQ(executable["type"], "EXECUTION_ONLY");
    EXPECT_EQ(executable["token"], "0x8123456789abcdef");
    EXPECT_EQ(executable["estimated_cycles_64bit"], std::int64_t{1} << 40);
    EXPECT_EQ(executable["bitstreams"][0]["address_fields"][0]["bit"], 20);
    EXPECT_EQ(executable["bitstreams"][0]["address_fields"][0]["half"], "upper 32 bits");
    EXPECT_EQ(executable["dma_hints"]["steps"].size(), 7U);
    EXPECT_EQ(executable["dma_hints"]["steps"][5]["step"], "fence");
    const auto& output = executable["outputs"][0];
    EXPECT_EQ(output["output"]["layout"]["tile_byte_offset"], Json({0, 12}));
    EXPECT_EQ(output["output"]["slices"]["layouts"][0]["stride"], Json({1, 2}));
    EXPECT_EQ(output["shape"][3]["end"], 3);
}

TEST_F(InspectEdgetpuTest, ABrokenPackageIsNamedAndTheRestShown) {
    model::Model model = two_part_model();
    model.subgraphs[0].operators[2].custom_options = SharedBytes::copy_of(as_bytes("nonsense"));
    const std::string path = save("broken.tflite", model);
    const std::string text = expect_ok({"inspect", path});
    EXPECT_THAT(text, HasSubstr("the compiled part cannot be read: subgraph 0: operator 2"));
    EXPECT_THAT(text, HasSubstr("RESHAPE"));
    const auto json = Json::parse(expect_ok({"inspect", path, "--json"}));
    EXPECT_EQ(json["edgetpu"]["compiled"], true);
    EXPECT_THAT(json["edgetpu"]["error"].get<std::string>(), HasSubstr("operator 2"));
}

TEST_F(InspectEdgetpuTest, EveryCompiledFileSaysWhatRunsWhere) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* folder : {"data/models", "data/edgetpu/templates"}) {
        const auto files = test::shared_files(folder, "_edgetpu.tflite");
        ASSERT_EQ(files.size(), 10U) << shared / folder;
        for (const auto& path : files) {
            SCOPED_TRACE(path.filename().string());
            const std::string text = expect_ok({"inspect", path, "--all"});
            for (const char* words :
                 {"runs on", "Edge TPU", "of parameters cached, taking", "streamed",
                  "per inference", "EXECUTION_ONLY", "PARAMETER_CACHING", "narrow memory per tile",
                  "DMA hints", "ms with transfers over USB"}) {
                EXPECT_THAT(text, HasSubstr(words));
            }
            const auto json = Json::parse(expect_ok({"inspect", path, "--json"}));
            for (const auto& op : json["subgraphs"][0]["operators"]) {
                EXPECT_EQ(op["runs_on"] == "edgetpu", op["name"] == "edgetpu-custom-op");
                EXPECT_FALSE(op["reason"].get<std::string>().empty());
            }
            const auto& package = json["edgetpu"]["packages"][0];
            const auto& memory = package["parameter_memory"];
            EXPECT_GE(memory["occupied_bytes"], memory["cached_bytes"]);
            EXPECT_EQ(memory["occupied_bytes"].get<int>() + memory["free_bytes"].get<int>(),
                      8 << 20);
            EXPECT_GT(package["bytes_per_inference"]["outputs"], 0);
            EXPECT_GT(package["estimate"]["cycles"], 0);
            EXPECT_LT(package["estimate"]["cached_s"], package["estimate"]["first_s"]);
            for (const auto& executable : package["executables"]) {
                EXPECT_FALSE(executable["instructions"].contains("data"));
            }
        }
    }
}

TEST_F(InspectEdgetpuTest, KnownPlacements) {
    REEF_SHARED_OR_SKIP(shared);
    const auto operators_of = [&](const std::string& name) {
        const auto path = shared / "data/models" / (name + "_edgetpu.tflite");
        return Json::parse(expect_ok({"inspect", path, "--json"}))["subgraphs"][0]["operators"];
    };
    const auto deeplab = operators_of("deeplabv3_mnv2_dm05_pascal_quant");
    EXPECT_THAT(deeplab[1]["reason"].get<std::string>(), HasSubstr("left out by the compiler"));
    EXPECT_EQ(deeplab[4]["reason"],
              "comes after operator 1 RESIZE_BILINEAR on the CPU, where the compiler stops");
    EXPECT_EQ(deeplab[8]["reason"],
              "the Edge TPU compiler's documentation does not list this operator");
    const auto posenet = operators_of("posenet_mobilenet_v1_075_353_481_16_quant_decoder");
    EXPECT_EQ(posenet[1]["reason"], "a custom operator, which is CPU code");
}

TEST_F(InspectEdgetpuTest, KnownMemoryAndTraffic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto package_of = [&](const std::string& file) {
        return Json::parse(
            expect_ok({"inspect", shared / file, "--json"}))["edgetpu"]["packages"][0];
    };
    // Everything of a Dense layer lies in whole rows: nothing is lost.
    const auto dense = package_of("data/edgetpu/templates/dense_1024_edgetpu.tflite");
    EXPECT_EQ(dense["parameter_memory"]["cached_bytes"], 1056768);
    EXPECT_EQ(dense["parameter_memory"]["occupied_bytes"], 1056768);
    // Element-wise constants are streamed although everything else is cached.
    const auto pose = package_of("data/models/movenet_single_pose_lightning_ptq_edgetpu.tflite");
    EXPECT_EQ(pose["parameter_memory"]["streamed_bytes"], 64 + 2304);
    EXPECT_EQ(pose["bytes_per_inference"]["inputs"], 192 * 192 * 3);
    // Outputs that the hints do not name.
    const auto lstm = package_of("data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    EXPECT_EQ(lstm["executables"][0]["dma_hints"]["fully_deterministic"], false);
    EXPECT_EQ(lstm["bytes_per_inference"]["outputs"], 16 + 24 + 40);
}

}  // namespace
}  // namespace reef::tool
