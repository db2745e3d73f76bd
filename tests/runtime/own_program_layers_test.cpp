// Tensors inside the programs of Reef's own compiler, against the plain models: as many as inside
// the vendor's, and every byte of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>

#include "reef/edgetpu/compiler.h"
#include "reef/runtime/layer_dump.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::runtime {
namespace {

struct OwnCase {
    std::string plain;          ///< below the reference data, without ".tflite"
    std::ptrdiff_t layers = 0;  ///< of all programs, bytes that are only moved left out
    std::ptrdiff_t gathered = 0;
    std::ptrdiff_t compared = 0;  ///< with a tensor of the plain model, by its operator
    /// Operators with weights that no layer is.
    std::vector<std::string> without{};
};
void PrintTo(const OwnCase& one, std::ostream* out) {
    *out << one.plain;
}

class OwnProgramLayers : public testing::TestWithParam<OwnCase> {};

TEST_P(OwnProgramLayers, EqualThePlainModelInTheChipsArithmetic) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / (GetParam().plain + ".tflite"));
    const auto compilation = edgetpu::compile(plain, {});
    ASSERT_TRUE(compilation) << compilation.error().message();
    auto sessions = test::open_compared(plain, compilation->model);
    ASSERT_TRUE(sessions) << sessions.error().message();
    test::draw_inputs(sessions->cpu, sessions->chip, 1);
    ASSERT_TRUE(sessions->cpu.run());
    ASSERT_TRUE(sessions->chip.run());
    const auto dump = dump_layers(compilation->model, sessions->chip, &plain);
    ASSERT_TRUE(dump) << dump.error().message();

    std::ptrdiff_t gathered = 0, compared = 0;
    for (const DumpedLayer& one : dump->layers) {
        if (!one.layer.problem.empty()) continue;
        ++gathered;
        if (!one.match || !one.match->comparable) continue;
        ++compared;
        EXPECT_NE(one.match->by, "place") << one.layer.name << ": " << one.plain_op;
        EXPECT_TRUE(std::ranges::equal(one.tensor.data, sessions->cpu.tensor(one.match->tensor)))
            << one.layer.name << " " << one.layer.instructions.front() << ": " << one.plain_op;
    }
    std::vector<std::string> without;
    for (const auto& op : dump->without_layer) without.push_back(op.name);
    EXPECT_EQ(std::ssize(dump->layers), GetParam().layers);
    EXPECT_EQ(gathered, GetParam().gathered);
    EXPECT_EQ(compared, GetParam().compared);
    EXPECT_EQ(without, GetParam().without);
}

std::string name_of_own(const testing::TestParamInfo<OwnCase>& info) {
    std::string name = info.param.plain.substr(info.param.plain.rfind('/') + 1);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

OwnCase own_case(std::string folder, const std::string& name, std::ptrdiff_t layers,
                 std::ptrdiff_t gathered, std::ptrdiff_t compared,
                 std::vector<std::string> without = {}) {
    return {std::move(folder) + "/" + name, layers, gathered, compared, std::move(without)};
}

INSTANTIATE_TEST_SUITE_P(
    Small, OwnProgramLayers,
    testing::Values(own_case("data/edgetpu/templates", "looming_64x64_3x3", 6, 6, 6),
                    own_case("data/edgetpu/templates", "gabor_64x64_p4", 2, 2, 2),
                    own_case("data/models", "split_concat", 10, 10, 0),
                    own_case("data/models", "keras_lstm_mnist_ptq", 22, 18, 1,
                             {"operator 1 UNIDIRECTIONAL_SEQUENCE_LSTM"}),
                    own_case("data/models", "mobilenet_v1_0.25_128_quant", 38, 34, 29),
                    own_case("data/models", "tf2_mobilenet_v2_1.0_224_ptq", 73, 69, 64),
                    own_case("data/edgetpu/wild",
                             "facemesh__face_detection_front_128_full_integer_quant", 61, 60, 56),
                    own_case("data/edgetpu/wild", "facemesh__face_landmark_192_full_integer_quant",
                             193, 193, 139),
                    own_case("data/edgetpu/wild", "tcn__quantized_model", 5, 5, 5)),
    name_of_own);

// Seconds each in an optimised build, and minutes under sanitizers.
#ifdef REEF_LARGE_PROGRAMS
INSTANTIATE_TEST_SUITE_P(
    Large, OwnProgramLayers,
    testing::Values(
        own_case("data/edgetpu/wild", "mot__yolov5nu_full_integer_quant", 238, 238, 225),
        own_case("data/edgetpu/wild", "mot__yolov8n_full_integer_quant", 219, 217, 187),
        own_case("data/edgetpu/wild", "mot__yolov10n_full_integer_quant", 494, 492, 362),
        own_case("data/models", "movenet_single_pose_lightning_ptq", 99, 95, 93,
                 {"operator 87 MUL"})),
    name_of_own);
#endif

}  // namespace
}  // namespace reef::runtime
