// Tensors inside compiled programs, gathered from what the simulated tiles store, against the plain
// models on the CPU in the chip's arithmetic: every byte of every convolution, on three pictures.
#include "reef/edgetpu/device/program_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>

#include "reef/edgetpu/layer_dump.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::runtime {
namespace {

using edgetpu::GatheredLayer;
using edgetpu::LayerMatch;
using edgetpu::MatchedBy;
using testing::IsEmpty;

struct Case {
    std::string name;      ///< of the plain model
    std::string compiled;  ///< below the reference data, without ".tflite"
    std::string plain;
    std::ptrdiff_t layers = 0;   ///< of the program, copies left out
    std::ptrdiff_t matched = 0;  ///< that are tensors of the plain model
    /// Steps of SOFTMAX and RESIZE_BILINEAR, which are no tensors of the plain model.
    std::ptrdiff_t not_gathered = 0;
    std::ptrdiff_t by_order = 0;  ///< of the matched ones, those that only their order tells apart
    std::ptrdiff_t by_place = 0;  ///< likewise, those with other values than the plain model's
    unsigned pictures = 3;
};
void PrintTo(const Case& one, std::ostream* out) {
    *out << one.name;
}

/// The inputs of the only compiled operator, which has run, as the chip's layers want them.
std::vector<std::vector<std::byte>> inputs_of_operator(const Session& chip) {
    const auto& graph = chip.graph();
    const auto op = std::ranges::find_if(graph.operators, edgetpu::is_compiled);
    const auto package = edgetpu::package_of(*op).value();
    std::vector<std::vector<std::byte>> inputs;
    for (const auto& layer : package.find(edgetpu::ExecutableType::execution_only)->inputs)
        for (const auto index : op->inputs)
            if (graph.tensors[static_cast<std::size_t>(index)].name == layer.name)
                inputs.emplace_back(chip.tensor(index).begin(), chip.tensor(index).end());
    return inputs;
}

using Layers = std::vector<GatheredLayer>;

class ProgramLayers : public testing::TestWithParam<Case> {
  protected:
    /// Of every picture, which it leaves in the inputs one by one.
    static Result<std::vector<Layers>> gathered(test::ComparedSessions& sessions) {
        std::vector<std::vector<std::vector<std::byte>>> inputs;
        for (unsigned seed = 1; seed <= GetParam().pictures; ++seed) {
            test::draw_inputs(sessions.cpu, sessions.chip, seed);
            REEF_CHECK(sessions.chip.run());
            inputs.push_back(inputs_of_operator(sessions.chip));
        }
        std::vector<std::vector<Bytes>> views;
        for (const auto& one : inputs) views.emplace_back(one.begin(), one.end());
        const auto& operators = sessions.chip.graph().operators;
        const auto op = std::ranges::find_if(operators, edgetpu::is_compiled);
        return edgetpu::program_layers(REEF_TRY(edgetpu::package_of(*op)), views);
    }

    static void expect_equal(const Layers& layers, const model::Model& compiled,
                             const model::Model& plain, const Session& cpu) {
        EXPECT_EQ(std::ssize(layers), GetParam().layers);
        EXPECT_EQ(std::ranges::count_if(layers, [](const auto& l) { return !l.problem.empty(); }),
                  GetParam().not_gathered);
        auto matches = edgetpu::match_layers(layers, compiled, plain);
        ASSERT_TRUE(matches) << matches.error().message();
        // Layers that are not gathered may have a place; nothing can be compared with it.
        std::erase_if(*matches, [](const LayerMatch& match) { return !match.comparable; });
        EXPECT_EQ(std::ssize(*matches), GetParam().matched);
        EXPECT_EQ(std::ranges::count(*matches, MatchedBy::order, &LayerMatch::by),
                  GetParam().by_order);
        for (const LayerMatch& match : *matches) {
            const auto& tensor = plain.subgraphs[0].tensors[static_cast<std::size_t>(match.tensor)];
            const GatheredLayer& layer = layers[match.layer];
            const Array mine = edgetpu::tensor_like(layer, tensor, match.row);
            EXPECT_TRUE(std::ranges::equal(mine.data, cpu.tensor(match.tensor)))
                << layer.name << " " << layer.instructions.front() << ": " << tensor.name;
        }
        EXPECT_EQ(std::ranges::count(*matches, MatchedBy::place, &LayerMatch::by),
                  GetParam().by_place);
        // Which leaves no convolution out.
        const auto left = edgetpu::operators_without_layer(*matches, compiled, plain);
        ASSERT_TRUE(left) << left.error().message();
        EXPECT_THAT(*left, IsEmpty());
    }
};

TEST_P(ProgramLayers, EqualThePlainModelInTheChipsArithmetic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / (GetParam().plain + ".tflite"));
    const auto compiled = test::load_model(shared / (GetParam().compiled + ".tflite"));
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    const auto all = gathered(*sessions);
    ASSERT_TRUE(all) << all.error().message();
    ASSERT_EQ(all->size(), GetParam().pictures);
    for (unsigned seed = 1; seed <= GetParam().pictures; ++seed) {
        SCOPED_TRACE(testing::Message() << "picture " << seed);
        test::draw_inputs(sessions->cpu, sessions->chip, seed);
        ASSERT_TRUE(sessions->cpu.run());
        expect_equal((*all)[seed - 1], compiled, plain, sessions->cpu);
    }
}

Case template_case(const std::string& name, std::ptrdiff_t layers, std::ptrdiff_t matched,
                   std::ptrdiff_t not_gathered = 0, std::ptrdiff_t by_order = 0) {
    const std::string path = "data/edgetpu/templates/" + name;
    return {name, path + "_edgetpu", path, layers, matched, not_gathered, by_order};
}
Case model_case(const std::string& name, std::ptrdiff_t layers, std::ptrdiff_t matched,
                std::ptrdiff_t not_gathered = 0, std::ptrdiff_t by_order = 0) {
    const std::string path = "data/models/" + name;
    return {name, path + "_edgetpu", path, layers, matched, not_gathered, by_order};
}

/// `by_place`: pools of older compilers, which limit nothing.
Case wild_case(const std::string& name, std::ptrdiff_t layers, std::ptrdiff_t matched,
               std::ptrdiff_t not_gathered = 0, std::ptrdiff_t by_place = 0,
               unsigned pictures = 3) {
    const std::string path = "data/edgetpu/wild/" + name;
    return {.name = name,
            .compiled = path + "_edgetpu",
            .plain = path,
            .layers = layers,
            .matched = matched,
            .not_gathered = not_gathered,
            .by_place = by_place,
            .pictures = pictures};
}

TEST(LayersByPlace, LeftOverLayersAndOperatorsAreMatched) {
    REEF_SHARED_OR_SKIP(shared);
    const auto path = (shared / "data/edgetpu/templates/gabor_64x64_p4").string();
    auto plain = test::load_model(path + ".tflite");
    const auto compiled = test::load_model(path + "_edgetpu.tflite");
    auto sessions = test::open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    test::draw_inputs(sessions->cpu, sessions->chip, 1);
    ASSERT_TRUE(sessions->chip.run());
    auto layers = edgetpu::program_layers(sessions->chip).value();

    // Another scale between the convolution and the pool: no value of either fits.
    auto& graph = plain.subgraphs[0];
    const auto between = static_cast<std::size_t>(graph.operators[1].outputs[0]);
    graph.tensors[between].quantization->scale[0] *= 1.01F;
    auto matches = edgetpu::match_layers(layers, compiled, plain).value();
    ASSERT_EQ(matches.size(), 2U);
    for (std::size_t i = 0; i < matches.size(); ++i) {
        EXPECT_EQ(matches[i].layer, i);
        EXPECT_EQ(matches[i].op, 1 + i);
        EXPECT_EQ(matches[i].by, MatchedBy::place);
        EXPECT_TRUE(matches[i].comparable);
        ASSERT_FALSE(matches[i].differences.empty());
    }
    EXPECT_EQ(matches[1].differences[0].field, "scale");
    EXPECT_NEAR(matches[1].differences[0].wanted, 1.01 * matches[1].differences[0].held, 1e-6);
    EXPECT_THAT(edgetpu::operators_without_layer(matches, compiled, plain).value(), IsEmpty());

    // Without a tensor the place is still known, but nothing can be compared.
    layers[0].problem = "it lies on no grid";
    matches = edgetpu::match_layers(layers, compiled, plain).value();
    ASSERT_EQ(matches.size(), 2U);
    EXPECT_EQ(matches[0].op, 1U);
    EXPECT_FALSE(matches[0].comparable);
    EXPECT_THAT(edgetpu::operators_without_layer(matches, compiled, plain).value(),
                testing::ElementsAre(1U));
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
    std::string name = info.param.name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Templates, ProgramLayers,
                         testing::Values(template_case("dense_256", 1, 1),
                                         template_case("dense_1024", 1, 1),
                                         template_case("looming_64x64_3x3", 7, 6),
                                         template_case("gabor_64x64_7k_4o_2s", 1, 1),
                                         template_case("gabor_64x64_p4", 2, 2),
                                         template_case("bright_16x16", 12, 2, 2),
                                         template_case("bright_64x64", 12, 2, 2),
                                         template_case("color_red_64x64", 14, 3, 2)),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Models, ProgramLayers,
                         testing::Values(model_case("mobilenet_v1_0.25_128_quant", 41, 29, 7),
                                         model_case("mobilenet_v1_0.5_160_quant", 41, 29, 7)),
                         test_name);

// As users publish them. Tensors that are the product of two, RESIZE_NEAREST_NEIGHBOR and what
// comes behind them were made out on yolov8n alone; the others held all of it at once. Not gathered
// are MAX_POOL_2D over a border, steps of a TRANSPOSE and of a softmax.
INSTANTIATE_TEST_SUITE_P(
    Wild, ProgramLayers,
    testing::Values(wild_case("facemesh__face_detection_front_128_full_integer_quant", 69, 53),
                    wild_case("facemesh__face_landmark_192_full_integer_quant", 188, 88),
                    wild_case("libredge__gabor_128x128_7k_4o_2s", 1, 1),
                    wild_case("libredge__gabor_128x128_p4", 2, 2),
                    wild_case("rt10__mobilenet_v1_0.25_128_quant", 29, 29, 0, 1),
                    wild_case("rt10__mobilenet_v1_1.0_224_quant_embedding_extractor", 28, 28, 0, 1),
                    wild_case("tcn__quantized_model", 5, 5, 0, 1),
                    wild_case("mot__yolov10n_full_integer_quant", 15, 15)),
    test_name);

// Seconds each in an optimised build, and minutes under sanitizers.
#ifdef REEF_LARGE_PROGRAMS
INSTANTIATE_TEST_SUITE_P(
    LargeModels, ProgramLayers,
    testing::Values(model_case("deeplabv3_mnv2_dm05_pascal_quant", 64, 64),
                    model_case("movenet_single_pose_lightning_ptq", 96, 89, 4, 0),
                    model_case("posenet_mobilenet_v1_075_353_481_16_quant_decoder", 31, 31, 0, 1)),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    LargeWild, ProgramLayers,
    testing::Values(wild_case("micro__posenet_mobilenet_v1_075_353_481_quant_decoder", 31, 31),
                    wild_case("mot__yolov8n_full_integer_quant", 190, 183, 1),
                    wild_case("mot__yolov5nu_full_integer_quant", 235, 220, 8, 0, 1),
                    wild_case("lite640__yolov8n_full_integer_quant", 189, 183, 0, 0, 1)),
    test_name);
#endif

}  // namespace
}  // namespace reef::runtime
