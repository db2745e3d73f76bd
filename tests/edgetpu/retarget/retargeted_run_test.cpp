// Retargeted programs on the simulated chip, against the models that they were retargeted to on the
// CPU in the chip's arithmetic: every byte of every tensor that the programs give.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "edgetpu/retarget/other_numbers.h"
#include "reef/edgetpu/retarget.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

struct Case {
    std::string name;  ///< below the reference data's folder, without ".tflite"
    /// Different values in the richest output of the slightly changed model, at least: the networks
    /// with small outputs give few.
    std::size_t least_values;
    /// The program alone says where each operator's numbers are.
    bool readable_alone = true;
    unsigned seeds = 6;  ///< of each change of scales
    /// Else each such change is refused.
    bool takes_other_scales = true;
};

void PrintTo(const Case& tested, std::ostream* out) {
    *out << tested.name.substr(tested.name.rfind('/') + 1);
}

class RetargetedRun : public testing::TestWithParam<Case> {
  protected:
    /// Gives the different values in the richest output.
    static std::size_t expect_right(const model::Model& compiled, const model::Model& target) {
        auto sessions = test::open_compared(target, compiled);
        EXPECT_TRUE(sessions) << (sessions ? "" : sessions.error().message());
        if (!sessions) return 0;
        auto& [cpu, chip] = *sessions;
        test::draw_inputs(cpu, chip, 5);
        const auto wanted = cpu.run();
        EXPECT_TRUE(wanted) << (wanted ? "" : wanted.error().message());
        const auto ran = chip.run();
        EXPECT_TRUE(ran) << (ran ? "" : ran.error().message());
        return test::expect_equal_compiled_tensors(chip, cpu);
    }

    /// Both ways to read the program give the same.
    static model::Model retargeted(const model::Model& compiled, const model::Model& plain,
                                   const model::Model& target) {
        auto with = retarget(compiled, plain, target, {});
        EXPECT_TRUE(with) << (with ? "" : with.error().message());
        EXPECT_GT(with->changed_parameter_bytes, 0U);
        EXPECT_GT(with->changed_instructions, 0U);
        if (GetParam().readable_alone) {
            const auto without = retarget(compiled, target, {});
            EXPECT_TRUE(without) << (without ? "" : without.error().message());
            EXPECT_EQ(without->model, with->model);
        }
        return std::move(with->model);
    }
};

TEST_P(RetargetedRun, GivesTheTargetsBytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / (GetParam().name + ".tflite"));
    const auto compiled = test::load_model(shared / (GetParam().name + "_edgetpu.tflite"));
    for (const test::Change change : {test::Change::all, test::Change::slight}) {
        SCOPED_TRACE(change == test::Change::all ? "all numbers" : "slight changes");
        const auto target = test::with_other_numbers(plain, 1, change);
        const std::size_t values = expect_right(retargeted(compiled, plain, target), target);
        if (change == test::Change::slight) {
            EXPECT_GE(values, GetParam().least_values);
        }
    }
}

TEST_P(RetargetedRun, IsRightOrRefusedForOtherScales) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = test::load_model(shared / (GetParam().name + ".tflite"));
    const auto compiled = test::load_model(shared / (GetParam().name + "_edgetpu.tflite"));
    using test::ScaleChange;
    std::size_t made = 0;
    for (const auto change : {ScaleChange::copied, ScaleChange::exchanged, ScaleChange::halved})
        for (unsigned seed = 0; seed < GetParam().seeds; ++seed) {
            const auto target = test::with_other_scales(plain, seed, change);
            // Scales that no kernel takes have no result to compare with.
            if (!test::open_compared(target, compiled)) continue;
            for (const bool with_source : {true, false}) {
                SCOPED_TRACE(fmt::format("change {}, seed {}, {} the source",
                                         static_cast<int>(change), seed,
                                         with_source ? "with" : "without"));
                const auto result = with_source ? retarget(compiled, plain, target, {})
                                                : retarget(compiled, target, {});
                if (result) {
                    expect_right(result->model, target);
                    ++made;
                } else {
                    EXPECT_EQ(result.error().cause, Cause::unsupported) << result.error().message();
                }
            }
        }
    EXPECT_EQ(made > 0, GetParam().takes_other_scales) << made;
}

Case of_templates(const std::string& name, std::size_t least_values) {
    return {"data/edgetpu/templates/" + name, least_values};
}

/// Tensors with one scale come in pairs of the same, which QUANTIZE or a pool gives on: where one
/// of two is another, an instruction is lacking.
Case of_pairs_of_scales(const std::string& name, std::size_t least_values) {
    Case one = of_templates(name, least_values);
    one.takes_other_scales = false;
    return one;
}

INSTANTIATE_TEST_SUITE_P(
    Templates, RetargetedRun,
    testing::Values(of_pairs_of_scales("dense_256", 50), of_pairs_of_scales("dense_1024", 50),
                    of_pairs_of_scales("gabor_64x64_7k_4o_2s", 100),
                    of_pairs_of_scales("gabor_64x64_p4", 100), of_templates("looming_64x64_3x3", 5),
                    of_templates("bright_16x16", 2), of_templates("bright_64x64", 2),
                    of_templates("color_red_64x64", 2), of_templates("color_green_64x64", 2),
                    of_templates("color_white_64x64", 2)));

INSTANTIATE_TEST_SUITE_P(
    Models, RetargetedRun,
    testing::Values(
        Case{.name = "data/models/mobilenet_v1_0.25_128_quant", .least_values = 5, .seeds = 2},
        Case{.name = "data/models/mobilenet_v1_0.5_160_quant", .least_values = 2, .seeds = 1}));

#ifdef REEF_LARGE_PROGRAMS
INSTANTIATE_TEST_SUITE_P(
    LargeModels, RetargetedRun,
    testing::Values(Case{.name = "data/models/deeplabv3_mnv2_dm05_pascal_quant",
                         .least_values = 200,
                         .seeds = 1},
                    Case{.name = "data/models/posenet_mobilenet_v1_075_353_481_16_quant_decoder",
                         .least_values = 50,
                         .seeds = 1},
                    // SUB and MUL by one number at its beginning.
                    Case{.name = "data/models/movenet_single_pose_lightning_ptq",
                         .least_values = 50,
                         .readable_alone = false,
                         .seeds = 1}));
#endif

}  // namespace
}  // namespace reef::edgetpu
