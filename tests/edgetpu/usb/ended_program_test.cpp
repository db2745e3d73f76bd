// Runs that are ended while a simulated chip works: programs that go on for minutes, and a watch
// that has enough of them sooner.
#include <gtest/gtest.h>

#include "edgetpu/sim/copy_program.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"

namespace reef::edgetpu::usb {
namespace {

using sim::copied_bytes;
using sim::interrupting_copy_program;
using sim::with;

/// Lets a run be asked so often before it has to end.
class Patience final : public RunWatch {
  public:
    explicit Patience(int asks) : left_(asks) {}
    [[nodiscard]] Status may_go_on() const override {
        if (left_ == 0) return fail(Cause::cancelled, "enough");
        --left_;
        return {};
    }
    [[nodiscard]] int left() const { return left_; }

  private:
    mutable int left_;
};

struct RunTensors {
    std::vector<std::byte> in = std::vector<std::byte>(copied_bytes, std::byte{42});
    std::vector<std::byte> out = std::vector<std::byte>(copied_bytes);
    [[nodiscard]] std::vector<Bytes> inputs() const { return {in}; }
    [[nodiscard]] std::vector<MutableBytes> outputs() { return {out}; }
};

struct Case {
    std::string name;
    std::string text;
};
void PrintTo(const Case& one, std::ostream* out) {
    *out << one.name;
}

const Case cases[] = {
    {"LoopOfTheScalarCore",
     with(interrupting_copy_program(), "halt last=1", "branch offset=0 unknown_33=1")},
    // One instruction of 2^32 steps, whose first two loops go over one word again and again.
    {"LoopsOfATensorInstruction",
     with(with(interrupting_copy_program(), "wait0=WIDE_TO_NARROW@0>=1+1",
               "wait0=WIDE_TO_NARROW@2>=1+1"),
          "loop=16 in=0x0[4x16] in.mask=1 out=0x80[4x16] out.mask=1 par=0x0[0x16] acc=0x0[0x16]",
          "loop=16384x16384x16 in=0x0[0x16384][0x16384][4x16] in.mask=4 out=0x80[4x16] out.mask=1 "
          "par=0x0[0x16384][0x16384][0x16] acc=0x0[0x16384][0x16384][0x16] reduction_mask=3")}};

class EndedProgram : public testing::TestWithParam<Case> {
  protected:
    static constexpr int patience = 40;
    Patience watch_{patience};
    RunTensors tensors_;
};

TEST_P(EndedProgram, EndsOnAStickAndTheNextRunIsAsAnyOther) {
    auto bus = std::make_shared<SimulatedBus>();
    bus->plug({.port = "1-1", .has_firmware = true, .faults = {}},
              std::make_unique<SimulatorCore>());
    auto device = Device::open(bus, {});
    ASSERT_TRUE(device) << device.error().message();
    const auto program = Program::prepare(sim::hinted_copy_package(GetParam().text));
    ASSERT_TRUE(program) << program.error().message();
    const auto ended =
        (*device)->run(*program, tensors_.inputs(), tensors_.outputs(), {.watch = &watch_});
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().cause, Cause::cancelled) << ended.error().message();
    EXPECT_EQ(watch_.left(), 0);

    const auto other = Program::prepare(sim::hinted_copy_package(interrupting_copy_program()));
    ASSERT_TRUE(other) << other.error().message();
    const auto ran = (*device)->run(*other, tensors_.inputs(), tensors_.outputs());
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_EQ(tensors_.out, tensors_.in);
    EXPECT_EQ((*device)->counters().recoveries, 1U);
}

TEST_P(EndedProgram, EndsOnASimulatorAndTheNextRunIsAsAnyOther) {
    for (const bool strict : {false, true}) {
        SCOPED_TRACE(strict);
        Simulator chip({.strict = strict});
        auto package = SimulatedPackage::prepare(sim::copy_package(GetParam().text));
        ASSERT_TRUE(package) << package.error().message();
        const Patience watch(strict ? 5 : patience);
        const auto ended = package->run(chip, tensors_.inputs(), tensors_.outputs(), &watch);
        ASSERT_FALSE(ended);
        EXPECT_EQ(ended.error().cause, Cause::cancelled) << ended.error().message();
        EXPECT_EQ(watch.left(), 0);

        auto other = SimulatedPackage::prepare(sim::copy_package(sim::copy_program()));
        ASSERT_TRUE(other) << other.error().message();
        tensors_.out.assign(copied_bytes, std::byte{});
        ASSERT_TRUE(other->run(chip, tensors_.inputs(), tensors_.outputs()));
        EXPECT_EQ(tensors_.out, tensors_.in);
    }
}

INSTANTIATE_TEST_SUITE_P(Programs, EndedProgram, testing::ValuesIn(cases),
                         [](const auto& tested) { return tested.param.name; });

TEST(WatchedProgram, AWatchThatLetsItRunChangesNothing) {
    RunTensors tensors;
    Simulator chip;
    auto package = SimulatedPackage::prepare(sim::copy_package(sim::copy_program()));
    ASSERT_TRUE(package) << package.error().message();
    const Patience watch(1000);
    ASSERT_TRUE(package->run(chip, tensors.inputs(), tensors.outputs(), &watch));
    EXPECT_LT(watch.left(), 1000);
    EXPECT_EQ(tensors.out, tensors.in);
}

}  // namespace
}  // namespace reef::edgetpu::usb
