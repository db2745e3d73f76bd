// The vendor's programs on both engines, round by round: equal memories after every instruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "edgetpu/sim/machine/machine.h"
#include "edgetpu/sim/machine/prepared_executable.h"
#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"
#include "same_memory.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

/// A hash of bytes in which no two words can make up for each other by their highest bits alone.
class Hash {
  public:
    template <typename T>
    void add(const T& memory) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(&memory);
        constexpr std::size_t block = sizeof(lanes_);
        for (std::size_t at = 0; at < sizeof memory; at += block) {
            decltype(lanes_) words{};
            std::memcpy(words.data(), bytes + at, std::min(block, sizeof memory - at));
            for (std::size_t i = 0; i < words.size(); ++i)
                lanes_[i] = std::rotl((lanes_[i] ^ words[i]) * 0x9E3779B97F4A7C15, 29);
        }
    }
    [[nodiscard]] std::uint64_t value() const {
        std::uint64_t all = 0;
        for (const auto lane : lanes_) all = std::rotl((all ^ lane) * 0x9E3779B97F4A7C15, 29);
        return all;
    }

  private:
    std::array<std::uint64_t, 8> lanes_{1, 2, 3, 4, 5, 6, 7, 8};
};

/// A tile as an instruction left it.
struct Finished {
    const ProgramInstruction* instruction;
    unsigned tile;
    std::uint64_t memories;
    friend bool operator==(const Finished&, const Finished&) = default;
};

void PrintTo(const Finished& one, std::ostream* out) {
    *out << place_of(*one.instruction) << " on tile " << one.tile << " leaves " << one.memories;
}

/// The instructions that finished since the last round.
class FinishedInstructions final : public MachineObserver {
  public:
    void finished(const Tile& tile, const ProgramInstruction& instruction) override {
        const TileMemory& memory = tile.memory;
        Hash hash;
        hash.add(memory.narrow);
        hash.add(memory.wide);
        hash.add(memory.row_length);
        hash.add(memory.full);
        hash.add(memory.scaling);
        hash.add(tile.counters);
        all.push_back({&instruction, tile.number, hash.value()});
    }

    std::vector<Finished> all;
};

#ifdef REEF_LARGE_PROGRAMS
constexpr std::size_t most_instructions = std::numeric_limits<std::size_t>::max();
#else
/// Of a program, counted once for each tile: more take minutes in a build that is not optimised.
constexpr std::size_t most_instructions = 700;
#endif

class Engines : public testing::TestWithParam<std::string> {
  protected:
    /// The program's first most_instructions on both machines.
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

    std::size_t instructions_ = 0;

  private:
    void run_in_step(const Program& program, HostMemory& host, HostMemory& other) {
        FinishedInstructions want;
        FinishedInstructions got;
        plain_.begin(program, host, &want);
        fast_.begin(program, other, &got);
        for (std::size_t finished = 0; finished < most_instructions;) {
            const auto one = plain_.advance();
            ASSERT_TRUE(one) << one.error().message();
            const auto two = fast_.advance();
            ASSERT_TRUE(two) << two.error().message();
            ASSERT_EQ(got.all, want.all);
            ASSERT_EQ(two->ended, one->ended);
            ASSERT_FALSE(one->starved || two->starved) << plain_.deadlock().message();
            finished += want.all.size();
            instructions_ += want.all.size();
            want.all.clear();
            got.all.clear();
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

TEST_P(Engines, LeaveTheSameMemoriesAfterEveryInstruction) {
    REEF_SHARED_OR_SKIP(shared);
    const auto model =
        model::load_tflite((shared / "data" / (GetParam() + "_edgetpu.tflite")).string());
    ASSERT_TRUE(model) << model.error().message();
    const auto packages = packages_of(*model);
    ASSERT_TRUE(packages) << packages.error().message();
    for (const auto& custom : *packages)
        for (const auto type : {ExecutableType::parameter_caching, ExecutableType::execution_only,
                                ExecutableType::stand_alone})
            if (const auto* executable = custom.package.find(type)) {
                run(*executable);
                if (HasFatalFailure()) return;
            }
    RecordProperty("instructions", std::to_string(instructions_));
    EXPECT_GT(instructions_, 0U);
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

}  // namespace
}  // namespace reef::edgetpu::sim
