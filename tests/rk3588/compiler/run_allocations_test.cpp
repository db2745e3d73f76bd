// Runs behind a kernel's driver ask for no memory. Counted is what this process does for a run: the
// device, its operators and the driver's port. The simulated kernel behind them is the board's
// side, whose cores do allocate; so do those of rk3588:sim, where no line between the two can be
// drawn.
#include <gtest/gtest.h>

#include <ostream>

#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/two_convolutions.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/drm/simulated_kernel.h"
#include "support/counted_allocations.h"

namespace reef::rk3588 {
namespace {

using drm::KernelDriver;
using drm::Start;

/// A simulated kernel whose own allocations are not counted.
class OtherSide final : public drm::Kernel {
  public:
    explicit OtherSide(KernelDriver driver) : kernel_({.driver = driver}) {}
    [[nodiscard]] std::vector<std::string> nodes(std::string_view folder,
                                                 std::string_view beginning) override {
        return kernel_.nodes(folder, beginning);
    }
    [[nodiscard]] int open(const std::string& path) override { return kernel_.open(path); }
    void close(int file) override { kernel_.close(file); }
    [[nodiscard]] int lock(int file) override { return kernel_.lock(file); }
    [[nodiscard]] int ioctl(int file, std::uint32_t request, void* argument) override {
        const test::NotCounted board;
        return kernel_.ioctl(file, request, argument);
    }
    [[nodiscard]] MutableBytes map(int file, std::uint64_t size, std::uint64_t offset) override {
        return kernel_.map(file, size, offset);
    }
    void unmap(MutableBytes bytes) override { kernel_.unmap(bytes); }
    [[nodiscard]] std::int64_t nanoseconds() override { return kernel_.nanoseconds(); }
    [[nodiscard]] std::string failure() const override { return kernel_.failure(); }

  private:
    drm::SimulatedKernel kernel_;
};

struct Interface {
    const char* name;
    KernelDriver driver;
    Start start;
    friend std::ostream& operator<<(std::ostream& out, const Interface& one) {
        return out << one.name;
    }
};

/// A program with tensors of its own.
struct Loaded {
    std::shared_ptr<const NpuProgram> program;
    std::unique_ptr<graph::DeviceOperator> op;
    std::vector<std::byte> input, output;

    Status run() {
        const MutableBytes in = input, out = output;
        return op->run({&in, 1}, {&out, 1});
    }
};

class RunAllocations : public testing::TestWithParam<Interface> {
  protected:
    void SetUp() override {
        if (!test::allocations_are_counted())
            GTEST_SKIP() << "allocations cannot be counted in this build";
        auto port = drm::open_port(std::make_shared<OtherSide>(GetParam().driver),
                                   GetParam().driver, {}, GetParam().start);
        ASSERT_TRUE(port) << port.error().message();
        device = make_drm_device("board", std::move(*port), Sram::off);
    }
    /// Two convolutions of an image whose sides are so many times as long.
    Loaded load(std::int32_t times, std::int32_t cores) {
        Options options;
        options.cores = cores;
        const auto compiled = compile(reef::test::two_convolutions(times).value(), options, {});
        EXPECT_TRUE(compiled) << compiled.error().message();
        auto program = std::make_shared<NpuProgram>();
        program->artifact = reef::test::programs_of(compiled->model).at(0);
        Loaded loaded{.program = program,
                      .op = device->load(program, control).value(),
                      .input = std::vector<std::byte>(program->artifact.inputs[0].elements()),
                      .output = std::vector<std::byte>(program->artifact.outputs[0].elements())};
        for (std::size_t i = 0; i < loaded.input.size(); ++i)
            loaded.input[i] = static_cast<std::byte>(i * 37 + i / 7);
        return loaded;
    }
    static void expect_none(Loaded& loaded, const char* what) {
        const std::size_t before = test::allocations();
        const Status ran = loaded.run();
        const std::size_t after = test::allocations();
        ASSERT_TRUE(ran) << what << ": " << ran.error().message();
        EXPECT_EQ(after - before, 0U) << what;
    }

    graph::RunControl control;
    std::shared_ptr<runtime::Device> device;
};

TEST_P(RunAllocations, OfAProgramAreNone) {
    const std::size_t before = test::allocations();
    for (const std::int32_t cores : {1, 3}) {
        Loaded loaded = load(6, cores);
        EXPECT_GT(test::allocations(), before) << "the count does not work";
        for (const char* which : {"the first", "the second", "the third"})
            expect_none(loaded, which);
    }
}

TEST_P(RunAllocations, OfProgramsThatTakeTurnsAreNone) {
    Loaded small = load(1, 1);
    expect_none(small, "before others");
    const auto alone = small.output;
    // Its activations and its tasks are more, so that the small one's move.
    Loaded large = load(12, 3);
    ASSERT_GT(large.program->artifact.activation_bytes, small.program->artifact.activation_bytes);
    ASSERT_GT(large.program->artifact.tasks.size(), small.program->artifact.tasks.size());
    expect_none(small, "after the larger one was loaded");
    EXPECT_EQ(small.output, alone);
    expect_none(large, "the larger one");
    expect_none(small, "after the larger one ran");
    EXPECT_EQ(small.output, alone);
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, RunAllocations,
    testing::Values(Interface{"rknpu", KernelDriver::rknpu, Start::each_task},
                    Interface{"rknpu_chained", KernelDriver::rknpu, Start::chain},
                    Interface{"rocket", KernelDriver::rocket, Start::each_task}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace reef::rk3588
