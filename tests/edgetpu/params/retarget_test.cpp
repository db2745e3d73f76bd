// Compiled programs re-emitted for other plain models, compared with what the vendor's compiler
// wrote for those.
#include "reef/edgetpu/retarget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edgetpu/params/pairs.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using testing::HasSubstr;

model::Model load(const std::filesystem::path& path) {
    return model::load_tflite(path.string()).value();
}

TEST(Retarget, GivesEveryCompiledModelBackForItsOwnSource) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared));
    for (const test::CompiledPair& pair : test::compiled_pairs()) {
        SCOPED_TRACE(pair.name);
        const auto plain = load(pair.plain);
        const auto compiled = load(pair.compiled);
        const auto result = retarget(compiled, plain, plain, {});
        ASSERT_TRUE(result) << result.error().message();
        EXPECT_EQ(result->model, compiled);
        EXPECT_EQ(result->changed_instructions, 0U);
        EXPECT_EQ(result->changed_parameter_bytes, 0U);
    }
}

/// Every tensor instruction that requantises, of the programs that compute.
std::vector<Instruction> computing(const std::vector<CompiledOperator>& operators) {
    std::vector<Instruction> found;
    for (const CompiledOperator& op : operators) {
        for (const Executable& executable : op.package.executables) {
            if (executable.type == ExecutableType::parameter_caching) continue;
            for (const InstructionBitstream& stream : executable.bitstreams) {
                const auto instructions = decode(stream.instructions.view()).value();
                for (const Instruction& one : instructions) {
                    if (one.info->find("clamp_max") != nullptr) found.push_back(one);
                }
            }
        }
    }
    return found;
}

TEST(Retarget, FindsEveryLayersValuesInTheInstructions) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared));
    for (const test::CompiledPair& pair : test::compiled_pairs()) {
        SCOPED_TRACE(pair.name);
        const auto plain = load(pair.plain);
        const auto compiled = load(pair.compiled);
        const auto on_chip = operators_on_chip(plain, compiled).value();
        const auto parts = plan_parameters(plain, on_chip).value();
        const auto operators = packages_of(compiled).value();
        const auto instructions = computing(operators);
        std::size_t found = 0, layers = 0, layers_found = 0;
        const auto roles = requantisations(plain, on_chip, parts);
        for (const Requantisation& role : roles) {
            const bool held = std::ranges::any_of(
                instructions, [&](const Instruction& one) { return holds(one, role); });
            found += held ? 1 : 0;
            if (role.role != "layer") continue;
            ++layers;
            layers_found += held ? 1 : 0;
        }
        const auto known = std::ranges::count_if(instructions, [&](const Instruction& one) {
            return std::ranges::any_of(roles, [&](const auto& role) { return holds(one, role); });
        });
        fmt::print("{}: {} of {} layers, {} of {} roles, {} of {} instructions\n", pair.name,
                   layers_found, layers, found, roles.size(), known, instructions.size());
        EXPECT_EQ(layers_found, layers);
    }
}

TEST(Retarget, GivesTheVendorsExecutablesForOtherColours) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const std::vector<std::string> colours = {"red", "green", "white"};
    for (const std::string& from : colours) {
        for (const std::string& to : colours) {
            SCOPED_TRACE(from + " to " + to);
            const auto vendor = load(folder / ("color_" + to + "_64x64_edgetpu.tflite"));
            const Package expected = packages_of(vendor).value().at(0).package;
            // The token is no function of the program: it names the vendor's run of the compiler.
            const RetargetOptions options{expected.executables[0].parameter_caching_token};
            const auto result = retarget(load(folder / ("color_" + from + "_64x64_edgetpu.tflite")),
                                         load(folder / ("color_" + from + "_64x64.tflite")),
                                         load(folder / ("color_" + to + "_64x64.tflite")), options);
            ASSERT_TRUE(result) << result.error().message();
            const Package package = packages_of(result->model).value().at(0).package;
            ASSERT_EQ(package.executables.size(), expected.executables.size());
            for (std::size_t i = 0; i < package.executables.size(); ++i) {
                SCOPED_TRACE(to_string(expected.executables[i].type));
                const Executable& ours = package.executables[i];
                const Executable& theirs = expected.executables[i];
                EXPECT_EQ(ours.parameters, theirs.parameters);
                EXPECT_EQ(ours.bitstreams, theirs.bitstreams);
                EXPECT_EQ(ours.inputs, theirs.inputs);
                EXPECT_EQ(ours.outputs, theirs.outputs);
                EXPECT_EQ(ours.dma_hints, theirs.dma_hints);
                EXPECT_EQ(ours, theirs);
            }
            // Tensors: all that a runtime reads.
            const auto& a = result->model.subgraphs[0].tensors;
            const auto& b = vendor.subgraphs[0].tensors;
            ASSERT_EQ(a.size(), b.size());
            for (std::size_t i = 0; i < a.size(); ++i) {
                EXPECT_EQ(a[i].name, b[i].name);
                ASSERT_TRUE(a[i].quantization && b[i].quantization);
                EXPECT_EQ(a[i].quantization->scale, b[i].quantization->scale);
                EXPECT_EQ(a[i].quantization->zero_point, b[i].quantization->zero_point);
            }
        }
    }
}

TEST(Retarget, RefusesWithTheReason) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const auto compiled = load(folder / "color_red_64x64_edgetpu.tflite");
    const auto red = load(folder / "color_red_64x64.tflite");
    const auto other = retarget(compiled, red, load(folder / "bright_64x64.tflite"), {});
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message(), HasSubstr("another architecture"));

    const auto wrong = retarget(compiled, load(folder / "color_white_64x64.tflite"), red, {});
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message(), HasSubstr("not those of the source"));

    auto biased = red;
    auto& tensors = biased.subgraphs[0].tensors;
    for (const model::Operator& op : biased.subgraphs[0].operators) {
        if (op.code.builtin != model::Op::conv_2d) continue;
        const std::array<std::byte, 4> one{std::byte{1}};
        tensors[static_cast<std::size_t>(op.inputs[2])].buffer =
            static_cast<std::uint32_t>(biased.buffers.size());
        biased.buffers.push_back(SharedBytes::copy_of(one));
    }
    const auto lacking = retarget(compiled, red, biased, {});
    ASSERT_FALSE(lacking);
    EXPECT_THAT(lacking.error().message(), HasSubstr("operator 1 CONV_2D: the model needs a bias"));
}

TEST(Retarget, RefusesOperatorsWhoseValuesItDoesNotKnow) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const auto plain = load(folder / "looming_64x64_3x3.tflite");
    auto target = plain;
    for (const model::Operator& op : plain.subgraphs[0].operators) {
        if (op.code.builtin != model::Op::add) continue;
        auto& tensor = target.subgraphs[0].tensors[static_cast<std::size_t>(op.outputs[0])];
        tensor.quantization->scale[0] *= 2;
    }
    const auto result =
        retarget(load(folder / "looming_64x64_3x3_edgetpu.tflite"), plain, target, {});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message(), HasSubstr("operator 5 ADD: its quantisation differs"));
}

}  // namespace
}  // namespace reef::edgetpu
