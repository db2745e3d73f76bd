// Tensors in the chip's SRAM: which they are, what they save, and that results stay the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>

#include "reef/runtime/session.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/random_run.h"
#include "rk3588/compiler/small_models.h"
#include "rk3588/compiler/two_convolutions.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/drm/simulated_kernel.h"
#include "rk3588/drm/uapi.h"
#include "rk3588/stream/task_cubes.h"
#include "rk3588/stream/task_work.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::rk3588 {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t all_sram = spec::sram_bytes;

Compiled compiled_with(const model::Model& plain, Options options) {
    auto done = compile(plain, options, {});
    EXPECT_TRUE(done) << done.error().message();
    return done ? std::move(*done) : Compiled{};
}

model::Model network(const std::filesystem::path& shared, const std::string& name) {
    return test::load_model(shared / "data/models" / (name + ".tflite"));
}

std::uint64_t end_of(const CubeWalk& walk) {
    return walk.first + (walk.surfaces - 1) * walk.surface_pitch +
           (walk.rows - 1) * walk.row_pitch + walk.row_bytes;
}

/// What tasks of an operator write is its output's cube from the first byte to the last, and what
/// they read lies in its inputs.
void expect_cubes_of(const Artifact& a, const ArtifactOperator& op) {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0;
    for (std::uint32_t t = op.first_task; t < op.first_task + op.tasks; ++t) {
        const Task task = task_of(a, t).value();
        const Work work = work_of(task);
        const auto cubes = cubes_of(task);
        const std::size_t results = (task.blocks & Blocks::cna) != 0   ? 1
                                    : (task.blocks & Blocks::ppu) != 0 ? 1
                                                                       : 0;
        EXPECT_EQ(cubes[results].bytes(), work.bytes.results) << op.name;
        if ((task.blocks & Blocks::cna) != 0) {
            EXPECT_EQ(cubes[0].bytes(), work.bytes.features) << op.name;
        }
        std::uint64_t operands = 0;
        for (std::size_t i = 0; i < cubes.size(); ++i) {
            EXPECT_EQ(cubes[i].bytes_below(std::numeric_limits<std::uint64_t>::max()),
                      cubes[i].bytes());
            EXPECT_EQ(cubes[i].bytes_below(cubes[i].first), 0U);
            if (i == results) continue;
            const bool feature = i == 0 && (task.blocks & Blocks::cna) != 0;
            operands += feature ? 0 : cubes[i].bytes();
            EXPECT_TRUE(std::ranges::any_of(op.inputs, [&](const Cube& in) {
                return in.offset <= cubes[i].first && end_of(cubes[i]) <= in.offset + in.bytes();
            })) << op.name;
        }
        // Beside cubes only operands by channel.
        EXPECT_LE(operands, work.bytes.operands) << op.name;
        if ((task.blocks & Blocks::cna) == 0) {
            EXPECT_EQ(operands, work.bytes.operands) << op.name;
        }
        first = std::min(first, cubes[results].first);
        last = std::max(last, end_of(cubes[results]));
    }
    if (op.tasks == 0) return;
    EXPECT_EQ(first, op.output.offset) << op.name;
    // Strips of a folded image may end behind the tensor.
    const bool folded =
        std::ranges::any_of(op.inputs, [](const Cube& c) { return c.fold.has_value(); });
    const std::uint64_t end = op.output.offset + op.output.bytes();
    EXPECT_TRUE(folded ? last >= end : last == end) << op.name << ' ' << last << ' ' << end;
}

TEST(Sram, TheCubesOfATaskAreItsOperatorsTensors) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        Options options;
        options.cores = 1 + static_cast<std::int32_t>(seed % 3);
        const auto plain = test::random_convolution(seed, seed % 2 == 0).model;
        for (const Artifact& a : test::programs_of(compiled_with(plain, options).model))
            for (const auto& op : a.operators) expect_cubes_of(a, op);
    }
}

TEST(Sram, TheCubesOfNetworksAreTheirTensors) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* name : {"tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant",
                             "movenet_single_pose_lightning_ptq"})
        for (const bool fuse : {false, true}) {
            Options options;
            options.fuse_sums = fuse;
            options.assume_nrdma = fuse;
            options.assume_lut = options.assume_ppu = true;
            options.sram_bytes = all_sram;
            const auto plain = network(shared, name);
            for (const Artifact& a : test::programs_of(compiled_with(plain, options).model))
                for (const auto& op : a.operators) expect_cubes_of(a, op);
        }
}

/// Of the bytes per inference that the prototype's programs move, those that ours move to and from
/// memory.
TEST(Sram, NetworksMoveAThirdOrSoToAndFromMemory) {
    REEF_SHARED_OR_SKIP(shared);
    struct Network {
        const char* name;
        double prototype, with_956, with_512, with_256;  ///< bytes; shares
    };
    constexpr Network networks[] = {
        {"mobilenet_v1_0.25_128_quant", 1.73e6, 0.31, 0.31, 0.31},
        {"mobilenet_v1_0.5_160_quant", 4.38e6, 0.33, 0.33, 0.35},
        {"tf2_mobilenet_v2_1.0_224_ptq", 18.8e6, 0.27, 0.42, 0.55},
        {"deeplabv3_mnv2_dm05_pascal_quant", 53.3e6, 0.37, 0.55, 0.73},
        {"posenet_mobilenet_v1_075_353_481_16_quant_decoder", 34.6e6, 0.36, 0.51, 0.72},
    };
    for (const Network& n : networks) {
        const auto plain = network(shared, n.name);
        for (const auto& [kib, most] : {std::pair{956U, n.with_956}, std::pair{512U, n.with_512},
                                        std::pair{256U, n.with_256}}) {
            Options options;
            options.sram_bytes = kib * 1024;
            std::uint64_t bytes = 0, sram = 0;
            for (const auto& program : compiled_with(plain, options).programs)
                for (const auto& op : program.operators) {
                    bytes += op.bytes.total();
                    sram += op.sram_bytes;
                }
            EXPECT_LE(static_cast<double>(bytes - sram), most * n.prototype)
                << n.name << ' ' << kib;
        }
    }
}

TEST(Sram, OutputsAreTheSameWithAndWithout) {
    const auto check = [](const model::Model& plain) {
        const auto without = test::run_on(compiled_with(plain, {}).model, "rk3588:sim", 7);
        for (const std::uint32_t sram : {4096U, 65536U, all_sram}) {
            Options options;
            options.sram_bytes = sram;
            const auto model = compiled_with(plain, options).model;
            for (const char* device :
                 {"rk3588:sim", "rk3588:rknpu?kernel=simulated&sram=on",
                  "rk3588:rknpu?kernel=simulated", "rk3588:rocket?kernel=simulated"})
                EXPECT_EQ(test::run_on(model, device, 7), without) << device << ' ' << sram;
        }
    };
    check(test::two_convolutions(6).value());
    for (unsigned seed = 0; seed < 6; ++seed)
        check(test::random_convolution(seed, seed % 2 == 0).model);
}

/// Three programs, which take turns in one buffer.
TEST(Sram, ANetworkOfSeveralProgramsRunsInTheSramOfOneBoard) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain = network(shared, "deeplabv3_mnv2_dm05_pascal_quant");
    Options options;
    options.sram_bytes = all_sram;
    const auto model = compiled_with(plain, options).model;
    ASSERT_GT(test::programs_of(model).size(), 1U);
    EXPECT_EQ(test::run_on(model, "rk3588:rknpu?kernel=simulated&sram=on", 7),
              test::run_on(compiled_with(plain, {}).model, "rk3588:sim", 7));
}

class OnABoardWithSram : public testing::Test {
  protected:
    static std::shared_ptr<const NpuProgram> program_of(const model::Model& model) {
        auto made = std::make_shared<NpuProgram>();
        made->artifact = test::programs_of(model).at(0);
        return made;
    }
    static std::shared_ptr<const NpuProgram> program(std::int32_t times, std::uint32_t sram) {
        Options options;
        options.sram_bytes = sram;
        return program_of(compiled_with(test::two_convolutions(times).value(), options).model);
    }
    std::shared_ptr<runtime::Device> device(Sram sram) {
        auto port = drm::open_port(kernel, drm::KernelDriver::rknpu, {}, drm::Start::each_task);
        return make_drm_device("board", std::move(*port), sram);
    }
    /// A board of its own.
    runtime::Device& device_without() {
        auto port = drm::open_port(std::make_shared<drm::SimulatedKernel>(
                                       drm::SimulatedBoard{.driver = drm::KernelDriver::rknpu}),
                                   drm::KernelDriver::rknpu, {}, drm::Start::each_task);
        others_.push_back(make_drm_device("another board", std::move(*port), Sram::off));
        return *others_.back();
    }
    std::vector<std::byte> run(graph::DeviceOperator& op, const NpuProgram& program) const {
        std::vector<std::byte> in(program.artifact.inputs[0].elements(), std::byte{77});
        std::vector<std::byte> out(program.artifact.outputs[0].elements());
        const MutableBytes input = in, output = out;
        const auto done = op.run({&input, 1}, {&output, 1});
        EXPECT_TRUE(done) << done.error().message();
        return out;
    }

    graph::RunControl control;
    std::shared_ptr<drm::SimulatedKernel> kernel = std::make_shared<drm::SimulatedKernel>(
        drm::SimulatedBoard{.driver = drm::KernelDriver::rknpu});
    std::vector<std::shared_ptr<runtime::Device>> others_;
};

TEST_F(OnABoardWithSram, ProgramsShareTheirActivations) {
    const auto board = device(Sram::on);
    const auto small = program(1, all_sram);
    const auto op = board->load(small, control).value();
    const auto before = run(*op, *small);
    const std::uint64_t used = kernel->used_sram();
    EXPECT_GE(used, small->artifact.sram_bytes);
    // A larger one moves them, and the first one's commands have to follow.
    Options options;
    options.sram_bytes = all_sram;
    unsigned seed = 0;
    while (program_of(compiled_with(test::random_convolution(seed, true).model, options).model)
               ->artifact.activation_bytes <= 2 * small->artifact.activation_bytes)
        ++seed;
    const auto large =
        program_of(compiled_with(test::random_convolution(seed, true).model, options).model);
    const auto want = run(*device_without().load(large, control).value(), *large);
    const auto other = board->load(large, control).value();
    EXPECT_EQ(run(*other, *large), want);
    EXPECT_EQ(run(*op, *small), before);
    EXPECT_EQ(run(*other, *large), want);
    EXPECT_LT(kernel->used_sram(), used + large->artifact.sram_bytes);
}

TEST_F(OnABoardWithSram, TooLittleIsAnErrorAndOthersGoOn) {
    const auto small = program(1, all_sram);
    kernel->board.sram_bytes = 0;
    {
        const auto refused = device(Sram::on)->load(small, control);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().cause, Cause::device_failed);
        EXPECT_THAT(refused.error().message(), HasSubstr("0 of"));
        EXPECT_THAT(refused.error().message(), HasSubstr("CONFIG_ROCKCHIP_RKNPU_SRAM"));
    }
    const auto without = device(Sram::off);
    const auto want = run(*without->load(small, control).value(), *small);
    kernel->board.sram_bytes = (small->artifact.sram_bytes + 4095) / 4096 * 4096;
    const auto board = device(Sram::on);
    const auto op = board->load(small, control).value();
    const auto large = program(20, all_sram);
    ASSERT_GT(large->artifact.sram_bytes, kernel->board.sram_bytes);
    EXPECT_FALSE(board->load(large, control));
    EXPECT_EQ(run(*op, *small), want);
}

/// Neither the larger buffer nor the one that had to go for it.
TEST_F(OnABoardWithSram, WhereNoBufferCanBeHadTheNextRunAsksAgain) {
    const auto small = program(1, all_sram), large = program(20, all_sram);
    const auto board = device(Sram::on);
    const auto op = board->load(small, control).value();
    const auto want = run(*op, *small);
    // The commands and constants of the larger one fit what is there.
    const std::size_t before = kernel->buffers();
    kernel->board.failing_request = drm::rknpu::create_request;
    kernel->board.failing_error = ENOMEM;
    EXPECT_FALSE(board->load(large, control));
    std::vector<std::byte> in(small->artifact.inputs[0].elements(), std::byte{77});
    std::vector<std::byte> out(small->artifact.outputs[0].elements());
    const MutableBytes input = in, output = out;
    const auto failed = op->run({&input, 1}, {&output, 1});
    if (kernel->buffers() < before) {
        EXPECT_FALSE(failed);
    }
    kernel->board.failing_request = 0;
    EXPECT_EQ(run(*op, *small), want);
    const auto other = board->load(large, control).value();
    EXPECT_EQ(run(*op, *small), want);
}

TEST_F(OnABoardWithSram, OtherProgramsRunInMemory) {
    const auto plain = program(1, 0);
    const auto board = device(Sram::on);
    const auto op = board->load(plain, control).value();
    EXPECT_EQ(run(*op, *plain), run(*device_without().load(plain, control).value(), *plain));
    EXPECT_EQ(kernel->used_sram(), 0U);
}

/// Programs of different sizes, whose activations are one buffer.
TEST_F(OnABoardWithSram, ThreadsTakeTurns) {
    const auto board = device(Sram::on);
    const std::shared_ptr<const NpuProgram> programs[] = {program(1, all_sram),
                                                          program(9, all_sram)};
    std::vector<std::byte> want[2];
    for (std::size_t i = 0; i < 2; ++i)
        want[i] = run(*device_without().load(programs[i], control).value(), *programs[i]);
    const auto work = [&](std::size_t which) {
        const auto op = board->load(programs[which], control).value();
        for (int i = 0; i < 20; ++i) EXPECT_EQ(run(*op, *programs[which]), want[which]);
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
}

TEST(Sram, AProgramSaysWhatIsInItAndNoMoreThanThereIs) {
    Options options;
    options.sram_bytes = 4096;
    Artifact a =
        test::programs_of(compiled_with(test::two_convolutions().value(), options).model).at(0);
    EXPECT_EQ(a.sram_bytes, std::min(4096U, a.activation_bytes));
    EXPECT_EQ(read_artifact(write_artifact(a)).value(), a);
    a.sram_bytes = a.activation_bytes + 1;
    const auto read = read_artifact(write_artifact(a));
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr("SRAM"));
}

}  // namespace
}  // namespace reef::rk3588
