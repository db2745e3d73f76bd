// The vendor's programs on both engines, round by round: equal memories and counters after
// each.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <ostream>
#include <random>

#include "edgetpu/sim/machine/machine.h"
#include "edgetpu/sim/machine/prepared_executable.h"
#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"
#include "same_memory.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

#ifdef REEF_LARGE_PROGRAMS
constexpr std::size_t most_rounds = std::numeric_limits<std::size_t>::max();
#else
/// Of a program: more take minutes in a build that is not optimised.
constexpr std::size_t most_rounds = 40;
#endif

/// The executables of a compiled model below the reference data, with their parameters' own.
void for_each_executable(const std::string& name,
                         const std::function<void(const Executable&)>& look) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model = model::load_tflite((shared / "data" / (name + "_edgetpu.tflite")).string());
    ASSERT_TRUE(model) << model.error().message();
    const auto packages = packages_of(*model);
    ASSERT_TRUE(packages) << packages.error().message();
    for (const auto& custom : *packages)
        for (const auto type : {ExecutableType::parameter_caching, ExecutableType::execution_only,
                                ExecutableType::stand_alone}) {
            const auto* executable = custom.package.find(type);
            if (executable != nullptr && !testing::Test::HasFatalFailure()) look(*executable);
        }
}

class Engines : public testing::TestWithParam<std::string> {
  protected:
    /// The program's first most_rounds on both machines.
    void run(const Executable& executable) {
        auto prepared = prepare(executable);
        ASSERT_TRUE(prepared) << prepared.error().message();
        auto other = HostMemory::create(prepared->executable);
        ASSERT_TRUE(other) << other.error().message();
        HostMemory& host = *prepared->host;
        std::mt19937 random(5);
        for (std::size_t i = 0; i < executable.inputs.size(); ++i) {
            for (auto& byte : host.input(i)) byte = static_cast<std::byte>(random());
            std::ranges::copy(host.input(i), other->input(i).begin());
        }
        host.begin_run();
        other->begin_run();
        run_in_step(prepared->program, host, *other);
        for (unsigned t = 0; t < tile_count; ++t)
            ASSERT_TRUE(same_memory(plain_.tile(t), fast_.tile(t))) << "tile " << t;
        for (std::size_t i = 0; i < executable.outputs.size(); ++i)
            EXPECT_TRUE(std::ranges::equal(host.output(i), other->output(i)));
    }

    std::size_t rounds_ = 0;

  private:
    void run_in_step(const Program& program, HostMemory& host, HostMemory& other) {
        plain_.begin(program, host);
        fast_.begin(program, other);
        for (std::size_t round = 0; round < most_rounds; ++round, ++rounds_) {
            const auto one = plain_.advance();
            ASSERT_TRUE(one) << one.error().message();
            const auto two = fast_.advance();
            ASSERT_TRUE(two) << two.error().message();
            for (unsigned t = 0; t < tile_count; ++t)
                ASSERT_TRUE(same_memory(plain_.tile(t), fast_.tile(t)))
                    << "tile " << t << " after round " << round;
            ASSERT_EQ(two->ended, one->ended);
            ASSERT_FALSE(one->starved || two->starved) << plain_.deadlock().message();
            if (one->ended) break;
        }
    }

    /// What stops endless programs is far above what these take.
    static MachineOptions options(EngineKind engine) {
        MachineOptions out{.engine = engine};
        out.most_steps /= 32;
        out.most_scalar_instructions /= 1024;
        return out;
    }

    Machine plain_{options(EngineKind::plain)};
    Machine fast_{options(EngineKind::fast)};
};

TEST_P(Engines, LeaveTheSameMemoriesAfterEveryRound) {
    for_each_executable(GetParam(), [this](const Executable& executable) { run(executable); });
    if (IsSkipped() || HasFatalFailure()) return;
    RecordProperty("rounds", std::to_string(rounds_));
    EXPECT_GT(rounds_, 0U);
}

struct Interpreted {
    const char* model;
    std::uint64_t steps;  ///< of tensor instructions with 16-bit operands, which have no plan

    friend std::ostream& operator<<(std::ostream& out, const Interpreted& one) {
        return out << one.model;
    }
};
class Plans : public testing::TestWithParam<Interpreted> {};

// An instruction without a plan is interpreted element by element.
TEST_P(Plans, AreOfVectorsForAllButAFewSteps) {
    std::uint64_t steps = 0, interpreted = 0;
    for_each_executable(GetParam().model, [&](const Executable& executable) {
        const auto prepared = prepare(executable);
        ASSERT_TRUE(prepared) << prepared.error().message();
        const Program& program = prepared->program;
        for (std::size_t i = 0; i < program.plan_at.size(); ++i) {
            // Other instructions have no steps.
            const TensorPlan& plan = program.plans.at(program.plan_at[i]);
            steps += program.shapes[i].steps;
            if (!plan.fast && !plan.blends && !plan.reduces) interpreted += program.shapes[i].steps;
        }
    });
    if (IsSkipped() || HasFatalFailure()) return;
    EXPECT_GT(steps, 0U);
    EXPECT_EQ(interpreted, GetParam().steps) << "of " << steps;
}

std::string name_of(const testing::TestParamInfo<std::string>& tested) {
    std::string name = tested.param.substr(tested.param.rfind('/') + 1);
    std::ranges::replace(name, '.', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(
    Templates, Engines,
    testing::Values("edgetpu/templates/dense_256", "edgetpu/templates/dense_1024",
                    "edgetpu/templates/looming_64x64_3x3", "edgetpu/templates/gabor_64x64_7k_4o_2s",
                    "edgetpu/templates/gabor_64x64_p4", "edgetpu/templates/bright_16x16",
                    "edgetpu/templates/bright_64x64", "edgetpu/templates/color_red_64x64",
                    "edgetpu/templates/color_green_64x64", "edgetpu/templates/color_white_64x64"),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Models, Engines,
    testing::Values("models/mobilenet_v1_0.25_128_quant", "models/mobilenet_v1_0.5_160_quant",
                    "models/mobilenet_v1_0.25_128_quant_cocompiled_with_mobilenet_v1_0.5_160_quant",
                    "models/split_concat", "models/keras_lstm_mnist_ptq",
                    "models/deeplabv3_mnv2_dm05_pascal_quant",
                    "models/movenet_single_pose_lightning_ptq",
                    "models/posenet_mobilenet_v1_075_353_481_16_quant_decoder",
                    "models/ssd_mobilenet_v1_coco_quant_postprocess_segment_0_of_2",
                    "models/ssd_mobilenet_v1_coco_quant_postprocess_segment_1_of_2"),
    name_of);

// The networks have 33 863, 220 400, 5 757 571, 518 152, 4 504 230 and 3032 steps.
INSTANTIATE_TEST_SUITE_P(
    Models, Plans,
    testing::Values(Interpreted{"models/mobilenet_v1_0.25_128_quant", 54},
                    Interpreted{"models/mobilenet_v1_0.5_160_quant", 63},
                    Interpreted{"models/deeplabv3_mnv2_dm05_pascal_quant", 2178},
                    Interpreted{"models/movenet_single_pose_lightning_ptq", 0},
                    Interpreted{"models/posenet_mobilenet_v1_075_353_481_16_quant_decoder", 0},
                    Interpreted{"models/keras_lstm_mnist_ptq", 192},
                    Interpreted{"edgetpu/templates/dense_1024", 0},
                    Interpreted{"edgetpu/templates/looming_64x64_3x3", 441},
                    Interpreted{"edgetpu/templates/gabor_64x64_7k_4o_2s", 0},
                    Interpreted{"edgetpu/templates/gabor_64x64_p4", 256},
                    Interpreted{"edgetpu/templates/bright_16x16", 25},
                    Interpreted{"edgetpu/templates/color_red_64x64", 73}));

}  // namespace
}  // namespace reef::edgetpu::sim
