// What programs are estimated to take, next to the vendor's of the same model: the table "Time" of
// docs/edgetpu-compiler.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/package.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

/// A plain model that has the vendor's program beside it, and what ours takes of the vendor's
/// cycles, in hundredths.
struct Timed {
    const char* file;
    int hundredths;
};

// All of the reference data but yolov10n, of which the vendor places 19 of our 178 operators.
constexpr Timed of_few_operators[] = {
    {"edgetpu/silicon/conv2d_12x176x32_to_32_k3_s1_same_quant", 96},
    {"edgetpu/silicon/conv2d_12x184x32_to_32_k3_s1_same_quant", 96},
    {"edgetpu/silicon/conv2d_12x192x32_to_32_k3_s1_same_quant", 96},
    {"edgetpu/templates/bright_16x16", 99},
    {"edgetpu/templates/bright_64x64", 45},
    {"edgetpu/templates/color_green_64x64", 36},
    {"edgetpu/templates/color_red_64x64", 36},
    {"edgetpu/templates/color_white_64x64", 36},
    {"edgetpu/templates/dense_1024", 84},
    {"edgetpu/templates/dense_256", 98},
    {"edgetpu/templates/gabor_64x64_7k_4o_2s", 99},
    {"edgetpu/templates/gabor_64x64_p4", 99},
    {"edgetpu/templates/looming_64x64_3x3", 99},
    {"edgetpu/wild/libredge__gabor_128x128_7k_4o_2s", 100},
    {"edgetpu/wild/libredge__gabor_128x128_p4", 101},
    {"edgetpu/wild/rt10__mobilenet_v1_0.25_128_quant", 48},
    {"edgetpu/wild/tcn__quantized_model", 99},
    {"models/keras_lstm_mnist_ptq", 61},
    {"models/mobilenet_v1_0.25_128_quant", 70},
    {"models/mobilenet_v1_0.5_160_quant", 65},
    {"models/split_concat", 94},
};
#if defined(REEF_LARGE_PROGRAMS)
constexpr Timed of_many_operators[] = {
    {"edgetpu/wild/facemesh__face_detection_front_128_full_integer_quant", 98},
    {"edgetpu/wild/facemesh__face_landmark_192_full_integer_quant", 74},
    {"edgetpu/wild/lite640__yolov8n_full_integer_quant", 82},
    {"edgetpu/wild/micro__posenet_mobilenet_v1_075_353_481_quant_decoder", 100},
    {"edgetpu/wild/mot__yolov5nu_full_integer_quant", 85},
    {"edgetpu/wild/mot__yolov8n_full_integer_quant", 105},
    {"edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor", 65},
    {"models/deeplabv3_mnv2_dm05_pascal_quant", 103},
    {"models/movenet_single_pose_lightning_ptq", 78},
    {"models/posenet_mobilenet_v1_075_353_481_16_quant_decoder", 99},
};
#endif

edgetpu::PackageEstimate time_of(const model::Model& compiled) {
    edgetpu::PackageEstimate all;
    for (const auto& op : compiled.subgraphs.front().operators) {
        if (!edgetpu::is_compiled(op)) continue;
        const auto time = edgetpu::estimate(edgetpu::package_of(op).value());
        EXPECT_TRUE(time) << time.error().message();
        if (time) all += *time;
    }
    return all;
}

struct Ratios {
    double cycles = 0, seconds = 0;
};
Ratios ratios_to_the_vendors(const std::string& file) {
    const auto compiled =
        edgetpu::compile(test::load_model(file + ".tflite"), {.most_programs = 1});
    EXPECT_TRUE(compiled) << compiled.error().message();
    if (!compiled) return {};
    const auto ours = time_of(compiled->model),
               theirs = time_of(test::load_model(file + "_edgetpu.tflite"));
    return {
        static_cast<double>(ours.computing.cycles) / static_cast<double>(theirs.computing.cycles),
        ours.cached_seconds / theirs.cached_seconds};
}

/// Nothing takes longer than it did, and nothing more than 1.15 of the vendor's cycles or of its
/// time with transfers; half of the models take no more than the vendor's.
TEST(CompileTime, EveryModelTakesAboutTheVendorsCyclesAtMost) {
    REEF_SHARED_OR_SKIP(shared);
    std::vector<Timed> all(std::begin(of_few_operators), std::end(of_few_operators));
#if defined(REEF_LARGE_PROGRAMS)
    all.insert(all.end(), std::begin(of_many_operators), std::end(of_many_operators));
#endif
    std::vector<double> cycles;
    for (const auto& [file, hundredths] : all) {
        const Ratios ratios = ratios_to_the_vendors((shared / "data" / file).string());
        EXPECT_LE(std::floor(100 * ratios.cycles), hundredths) << file;
        EXPECT_LE(ratios.cycles, 1.15) << file;
        EXPECT_LE(ratios.seconds, 1.15) << file;
        cycles.push_back(ratios.cycles);
    }
    const auto middle = cycles.begin() + static_cast<std::ptrdiff_t>(cycles.size() / 2);
    std::ranges::nth_element(cycles, middle);
    EXPECT_LE(*middle, 1.0);
}

}  // namespace
}  // namespace reef
