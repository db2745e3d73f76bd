// Strict runs of the vendor's programs: what they do that a strict reader would not expect, by
// name.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "machine_run.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

using Counts = std::map<FindingKind, std::uint64_t>;

struct Case {
    std::string path;
    Counts known;  ///< accesses or pieces, by kind, with full bits
    /// Pairs of instructions that only the full bits of rotating rows order.
    std::size_t hazards_without_full_bits = 0;
};

void PrintTo(const Case& tested, std::ostream* out) {
    *out << std::filesystem::path(tested.path).stem().string();
}

using enum FindingKind;

// Why there are any (docs/simulator.md): flits that two pieces of the input share are sent twice;
// deeplab and posenet
// send some cached rows twice; the LSTM reads a word of
// scalar memory before its first step writes it; bright_64x64 receives its one parameter row in
// tiles that have no work. Of those in the wild, iw's copy a table on tiles that have no work and
// no table; teachable's pool gathers rows of eight pixels where there are seven.
const Case cases[] = {
    {"data/edgetpu/templates/dense_256_edgetpu.tflite", {}, 3},
    {"data/edgetpu/templates/dense_1024_edgetpu.tflite", {}, 15},
    {"data/edgetpu/templates/looming_64x64_3x3_edgetpu.tflite", {}, 0},
    {"data/edgetpu/templates/gabor_64x64_7k_4o_2s_edgetpu.tflite", {}, 0},
    {"data/edgetpu/templates/gabor_64x64_p4_edgetpu.tflite", {}, 0},
    {"data/edgetpu/templates/bright_16x16_edgetpu.tflite", {}, 11},
    {"data/edgetpu/templates/bright_64x64_edgetpu.tflite",
     {{row_never_read, 45}, {overwritten_unread, 3}},
     57},
    {"data/edgetpu/templates/color_red_64x64_edgetpu.tflite", {}, 57},
    {"data/edgetpu/templates/color_green_64x64_edgetpu.tflite", {}, 57},
    {"data/edgetpu/templates/color_white_64x64_edgetpu.tflite", {}, 57},
    {"data/models/mobilenet_v1_0.25_128_quant_edgetpu.tflite", {}, 507},
    {"data/models/split_concat_edgetpu.tflite", {}, 0},
    {"data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2_edgetpu.tflite", {}, 2},
    {"data/models/keras_lstm_mnist_ptq_edgetpu.tflite", {{unwritten_read, 1}, {read_twice, 3}}, 11},
};

// As users publish them.
Case of_wild(const std::string& name, Counts known = {}) {
    return {"data/edgetpu/wild/" + name + "_edgetpu.tflite", std::move(known)};
}
const Case wild_cases[] = {
    of_wild("iw__model_mat_Add", {{unwritten_read, 816}, {read_twice, 1}}),
    of_wild("iw__model_padding_128x128x3", {{unwritten_read, 816}, {read_twice, 1}}),
    of_wild("iw__model_padding_stride_128x128x3", {{unwritten_read, 816}, {read_twice, 1}}),
    of_wild("iw__model_stride_128x128x3"),
    of_wild("libredge__gabor_128x128_7k_4o_2s"),
    of_wild("libredge__gabor_128x128_p4"),
    of_wild("tcn__quantized_model", {{read_twice, 2}}),
    of_wild("mot__yolov10n_full_integer_quant"),
    of_wild("rt10__mobilenet_v1_0.25_128_quant"),
};

#ifdef REEF_LARGE_PROGRAMS
const Case large_wild_cases[] = {
    of_wild("facemesh__face_detection_front_128_full_integer_quant"),
    of_wild("facemesh__face_landmark_192_full_integer_quant"),
    of_wild("micro__posenet_mobilenet_v1_075_353_481_quant_decoder", {{read_twice, 32}}),
    of_wild("mot__yolov5nu_full_integer_quant"),
    of_wild("mot__yolov8n_full_integer_quant"),
    of_wild("rt10__mobilenet_v1_1.0_224_quant_embedding_extractor"),
    of_wild("teachable__model", {{unwritten_read, 320}}),
    of_wild("lite640__yolov8n_full_integer_quant", {{read_twice, 1904}}),
};
// A strict run follows every byte: half a minute each, and minutes under sanitizers.
const Case large_cases[] = {
    {"data/models/mobilenet_v1_0.5_160_quant_edgetpu.tflite", {}, 511},
    {"data/models/movenet_single_pose_lightning_ptq_edgetpu.tflite", {}, 0},
    {"data/models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite", {{read_twice, 27}}, 2},
};
const Case largest_cases[] = {
    {"data/models/posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite",
     {{read_twice, 38}}},
    {"data/models/ssd_mobilenet_v1_coco_quant_postprocess_segment_0_of_2_edgetpu.tflite",
     {{read_twice, 2}}},
    {"data/models/mobilenet_v1_0.25_128_quant_cocompiled_with_mobilenet_v1_0.5_160_quant_"
     "edgetpu.tflite",
     {}},
};

TEST(StrictRuns, AreOfEveryProgram) {
    REEF_SHARED_OR_SKIP(shared);
    std::set<std::string> listed;
    const auto list_all = [&](std::span<const Case> some) {
        for (const Case& one : some) listed.insert((shared / one.path).string());
    };
    list_all(cases);
    list_all(wild_cases);
    list_all(large_wild_cases);
    list_all(large_cases);
    list_all(largest_cases);
    std::set<std::string> there;
    for (const char* folder : {"data/models", "data/edgetpu/templates", "data/edgetpu/wild"})
        for (const auto& path : test::shared_files(folder, "_edgetpu.tflite"))
            there.insert(path.string());
    EXPECT_EQ(listed, there);
}
#endif

std::string list(const std::vector<Finding>& findings) {
    std::string all;
    for (const auto& finding : findings) all += message(finding) + "\n";
    return all;
}

class StrictRun : public testing::TestWithParam<Case> {};
class WithoutFullBits : public testing::TestWithParam<Case> {};

TEST_P(StrictRun, FindsWhatIsKnownAndNoHazard) {
    REEF_SHARED_OR_SKIP(shared);
    auto programs = PackagePrograms::load(shared / GetParam().path);
    ASSERT_TRUE(programs) << programs.error().message();
    programs->set_inputs(5);
    Machine machine({.strict = true});
    const auto status = programs->run(machine);
    ASSERT_TRUE(status) << status.error().message();
    const auto& findings = machine.monitor()->findings();
    Counts counts;
    for (const auto& finding : findings) counts[finding.kind] += finding.times;
    EXPECT_EQ(counts, GetParam().known) << list(findings);
}

TEST_P(WithoutFullBits, NamesWhatTheyAloneOrder) {
    REEF_SHARED_OR_SKIP(shared);
    auto programs = PackagePrograms::load(shared / GetParam().path);
    ASSERT_TRUE(programs) << programs.error().message();
    programs->set_inputs(5);
    Machine machine({.full_bits = false, .strict = true});
    const auto status = programs->run(machine);
    ASSERT_TRUE(status) << status.error().message();
    std::size_t hazards = 0;
    for (const auto& finding : machine.monitor()->findings()) {
        if (finding.kind != hazard) continue;
        ++hazards;
        EXPECT_EQ(finding.memory, "wide memory");
        EXPECT_FALSE(finding.instruction.empty() || finding.other.empty()) << message(finding);
    }
    EXPECT_EQ(hazards, GetParam().hazards_without_full_bits) << list(machine.monitor()->findings());
}

std::string name_of(const testing::TestParamInfo<Case>& tested) {
    auto name = std::filesystem::path(tested.param.path).stem().string();
    for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Vendor, StrictRun, testing::ValuesIn(cases), name_of);
INSTANTIATE_TEST_SUITE_P(Wild, StrictRun, testing::ValuesIn(wild_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Vendor, WithoutFullBits, testing::ValuesIn(cases), name_of);
#ifdef REEF_LARGE_PROGRAMS
INSTANTIATE_TEST_SUITE_P(LargeWild, StrictRun, testing::ValuesIn(large_wild_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Large, StrictRun, testing::ValuesIn(large_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Large, WithoutFullBits, testing::ValuesIn(large_cases), name_of);
INSTANTIATE_TEST_SUITE_P(Largest, StrictRun, testing::ValuesIn(largest_cases), name_of);
#endif

}  // namespace
}  // namespace reef::edgetpu::sim
