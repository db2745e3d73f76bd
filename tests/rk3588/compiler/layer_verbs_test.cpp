// Looking into programs for the RK3588 with the command: inspect, disasm, layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/compiler/two_convolutions.h"
#include "support/process.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// PAD, a convolution of one pixel, a sum with the model's second input, RESHAPE.
model::Model padded_sum() {
    model::Builder b("a padded sum");
    const auto q = [](float scale) { return model::per_tensor(scale, 110); };
    std::vector<std::uint8_t> weights(8 * 9 * 4);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<std::uint8_t>(i * 37 % 256);
    const std::vector<std::int32_t> paddings{0, 0, 1, 1, 1, 1, 0, 0}, flat{1, 8 * 48};
    const auto in = b.input("in", ElementType::uint8, {1, 8, 6, 4}, q(0.05F));
    const auto other = b.input("other", ElementType::uint8, {1, 8, 6, 8}, q(0.07F));
    const auto pads = b.constant<std::int32_t>("paddings", ElementType::int32, {4, 2}, paddings);
    const auto padded = b.tensor("padded", ElementType::uint8, {1, 10, 8, 4}, q(0.05F));
    const auto w = b.constant<std::uint8_t>("w", ElementType::uint8, {8, 3, 3, 4}, weights,
                                            model::per_tensor(0.01F, 128));
    const auto conv = b.tensor("conv", ElementType::uint8, {1, 8, 6, 8}, q(0.08F));
    const auto sum = b.tensor("sum", ElementType::uint8, {1, 8, 6, 8}, q(0.1F));
    const auto shape = b.constant<std::int32_t>("shape", ElementType::int32, {2}, flat);
    const auto out = b.tensor("out", ElementType::uint8, {1, 8 * 48}, q(0.1F));
    b.add(model::Op::pad, {in, pads}, {padded});
    b.add(model::Op::conv_2d, {padded, w, model::absent_tensor}, {conv},
          model::Conv2dOptions{.padding = model::Padding::valid, .stride_h = 1, .stride_w = 1});
    b.add(model::Op::add, {conv, other}, {sum}, model::AddOptions{});
    b.add(model::Op::reshape, {sum, shape}, {out}, model::ReshapeOptions{});
    b.output(out);
    auto done = b.finish();
    EXPECT_TRUE(done) << done.error().message();
    return std::move(*done);
}

class NpuLayers : public testing::Test {
  protected:
    void use(const model::Model& model, std::vector<std::string> more = {}) {
        ASSERT_TRUE(write_file(plain, model::write_tflite(model).value()));
        std::vector<std::string> arguments{"compile", plain, "--target", "rk3588", "-o", compiled};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const auto done = reef(std::move(arguments));
        ASSERT_EQ(done.exit_code, 0) << done.err;
    }
    static test::ProcessResult reef(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        return test::run_process(arguments);
    }
    static json json_of(const test::ProcessResult& done) {
        return json::parse(done.out, nullptr, false);
    }

    test::TemporaryFolder folder;
    std::string plain = folder.file("net.tflite"), compiled = folder.file("npu.tflite");
};

/// An operator of the CPU behind the chip's, whose outputs have no shape in the file.
TEST_F(NpuLayers, OutputsOfOpenShapeAreCompared) {
    REEF_SHARED_OR_SKIP(shared);
    use(model::load_tflite((shared / "data/models/posenet_mobilenet_v1_075_353_481_16_quant_"
                                     "decoder.tflite")
                               .string())
            .value());
    const auto done = reef({"compare", compiled, plain, "--layers", "--json"});
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    const json shown = json_of(done);
    EXPECT_EQ(std::ranges::count_if(shown.at("tensors"),
                                    [](const json& t) { return t.at("shape") == "1x20x17x2 f32"; }),
              1);
}

TEST_F(NpuLayers, InspectShowsWhatAProgramIsMadeOf) {
    use(test::two_convolutions().value(), {"--cores", "2"});
    const auto text = reef({"inspect", compiled, "--all"});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    for (const char* part : {"RK3588, schema version 1", "tflite", "depthwise convolution",
                             "stride 2", "unproven forms", "activations", "relocations"})
        EXPECT_THAT(text.out, HasSubstr(part));
    const auto shown = reef({"inspect", compiled, "--json"});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    const auto program = json_of(shown).at("rk3588").at("programs").at(0);
    const auto report = json_of(reef({"compile", plain, "--target", "rk3588", "--cores", "2", "-o",
                                      folder.file("again.tflite"), "--costs", "--json"}));
    const auto& made = report.at("programs").at(0);
    // Read off the words is what the compiler meant.
    EXPECT_EQ(program.at("estimated_cycles"), made.at("estimated_cycles"));
    EXPECT_EQ(program.at("tasks").size(), made.at("tasks").get<std::size_t>());
    EXPECT_EQ(program.at("activation_bytes"), made.at("activation_bytes"));
    const auto& last = program.at("tasks").back();
    EXPECT_EQ(last.at("operator"), "1 DEPTHWISE_CONV_2D");
    EXPECT_EQ(last.at("output").at(2), 8);
    EXPECT_FALSE(program.at("unproven_forms").empty());
    EXPECT_EQ(program.at("tensors").at(0).at("name"), "in0");
}

TEST_F(NpuLayers, DamagedProgramsAreTold) {
    use(test::two_convolutions().value());
    auto model = model::load_tflite(compiled).value();
    auto& op = model.subgraphs[0].operators[0];
    op.custom_options = op.custom_options.part(0, op.custom_options.size() / 2);
    ASSERT_TRUE(write_file(compiled, model::write_tflite(model).value()));
    const auto shown = reef({"inspect", compiled});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("cannot be read"));
    EXPECT_THAT(json_of(reef({"inspect", compiled, "--json"})).at("rk3588").at("error"),
                HasSubstr("cut off"));
}

TEST_F(NpuLayers, DisasmShowsTheTasksOfACompiledModel) {
    use(test::two_convolutions().value());
    const auto shown = reef({"disasm", compiled, "--symbolic"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("CONV_MODE=depthwise"));
    EXPECT_THAT(shown.out, HasSubstr("OP_EN"));
    const auto checked = reef({"disasm", compiled, "--check"});
    EXPECT_EQ(checked.exit_code, 0) << checked.out;
}

TEST_F(NpuLayers, EachIsComparedWithTheCpusOfTheSameInput) {
    use(test::two_convolutions().value());
    const auto text = reef({"compare", compiled, plain, "--layers"});
    EXPECT_EQ(text.exit_code, 0) << text.out << text.err;
    EXPECT_THAT(text.out, HasSubstr("tflite: two roundings"));
    EXPECT_THAT(text.out, HasSubstr("may be 1 apart"));
    const auto shown = json_of(reef({"compare", compiled, plain, "--layers", "--json"}));
    EXPECT_EQ(shown.at("tolerance"), 1);
    ASSERT_EQ(shown.at("tensors").size(), 3U);
    for (const auto& tensor : shown.at("tensors")) EXPECT_LE(tensor.at("max_abs_diff"), 1);
    EXPECT_EQ(shown.at("tensors").at(0).at("layer"), "layer_000");
    EXPECT_TRUE(shown.at("not_compared").empty());
    // Who gives a tolerance gets it.
    EXPECT_EQ(json_of(reef({"compare", compiled, plain, "--layers", "--json", "--tolerance", "0"}))
                  .at("tolerance"),
              0);
    EXPECT_EQ(reef({"compare", compiled, compiled, "--layers"}).exit_code, 1);
}

/// The second operator's weights are changed: its input is right, and what comes behind it is right
/// for what it gave.
TEST_F(NpuLayers, TheFirstWrongOperatorIsNamed) {
    use(test::two_convolutions().value());
    auto model = model::load_tflite(compiled).value();
    auto& options = model.subgraphs[0].operators[0].custom_options;
    auto artifact = rk3588::read_artifact(options.view()).value();
    std::vector<std::byte> constants(artifact.constants.view().begin(),
                                     artifact.constants.view().end());
    // The depthwise kernels are the last ones that are packed.
    std::fill(constants.end() - 9 * 16, constants.end(), std::byte{0x35});
    artifact.constants = SharedBytes::copy_of(constants);
    options = SharedBytes::copy_of(write_artifact(artifact));
    ASSERT_TRUE(write_file(compiled, model::write_tflite(model).value()));
    const auto text = reef({"compare", compiled, plain, "--layers"});
    EXPECT_EQ(text.exit_code, 1);
    EXPECT_THAT(text.out, HasSubstr("first layer that differs"));
    EXPECT_THAT(text.out, HasSubstr("layer_001, task 1"));
    const auto shown = json_of(reef({"compare", compiled, plain, "--layers", "--json"}));
    EXPECT_TRUE(shown.at("tensors").at(0).at("equal"));
    EXPECT_FALSE(shown.at("tensors").at(1).at("equal"));
}

TEST_F(NpuLayers, WhatTheChipDoesNotStoreIsListed) {
    use(padded_sum(), {"--fuse", "add"});
    const auto shown = json_of(reef({"compare", compiled, plain, "--layers", "--json"}));
    std::vector<std::string> reasons;
    for (const auto& one : shown.at("not_compared"))
        reasons.push_back(one.at("layer").get<std::string>() + " " +
                          one.at("reason").get<std::string>());
    EXPECT_THAT(reasons, testing::UnorderedElementsAre(
                             HasSubstr("layer_000 it takes no task: the windows"),
                             HasSubstr("layer_001 operator 2 adds to its sums"),
                             HasSubstr("layer_003 it takes no task: its bytes are")));
    EXPECT_THAT(shown.at("operators_without_layer").dump(), HasSubstr("CONV_2D"));
    const std::string tensors = folder.file("tensors");
    const auto zeros = [&](const char* name, std::vector<std::int64_t> shape) {
        Array array{ElementType::uint8, std::move(shape), {}};
        array.data.resize(static_cast<std::size_t>(array.element_count()));
        EXPECT_TRUE(write_file(folder.file(name), write_npy(array).value()));
        return folder.file(name);
    };
    const auto dumped = reef({"run", compiled, "--device", "rk3588:sim", "--input",
                              "in=" + zeros("in.npy", {1, 8, 6, 4}), "--input",
                              "other=" + zeros("other.npy", {1, 8, 6, 8}), "--dump-layers", tensors,
                              "--like", plain});
    EXPECT_EQ(dumped.exit_code, 0) << dumped.err;
    EXPECT_THAT(dumped.out, HasSubstr("1 of 4 layers"));
    EXPECT_THAT(dumped.out, HasSubstr("neither rounded nor stored"));
    EXPECT_TRUE(read_file(tensors + "/t0006.npy"));
}

TEST_F(NpuLayers, OtherModelsAreRefused) {
    use(padded_sum());
    const std::string other = folder.file("other.tflite");
    auto model = padded_sum();
    std::swap(model.subgraphs[0].operators[1], model.subgraphs[0].operators[2]);
    ASSERT_TRUE(write_file(other, model::write_tflite(model).value()));
    const auto compared = reef({"compare", compiled, other, "--layers"});
    EXPECT_EQ(compared.exit_code, 1);
    EXPECT_THAT(compared.err, HasSubstr("no operator 1 CONV_2D"));
}

}  // namespace
}  // namespace reef
