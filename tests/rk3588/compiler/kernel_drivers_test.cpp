// Programs through the kernel's drivers, on simulated kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "reef/chip/compiler.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"
#include "rk3588/compiler/random_run.h"
#include "rk3588/compiler/small_models.h"
#include "rk3588/compiler/two_convolutions.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/drm/buffer_pool.h"
#include "rk3588/drm/recording.h"
#include "rk3588/drm/simulated_kernel.h"
#include "rk3588/drm/uapi.h"

namespace reef::rk3588 {
namespace {

using drm::KernelDriver;
using drm::SimulatedBoard;
using drm::SimulatedKernel;
using drm::Start;
using testing::AllOf;
using testing::HasSubstr;

model::Model compiled(const model::Model& plain) {
    const auto* compiler = runtime::Registry::of_process().part<chip::Compiler>("rk3588");
    auto done = compiler->compile(plain, {});
    EXPECT_TRUE(done) << done.error().message();
    return std::move(done->model);
}

TEST(KernelDrivers, GiveTheBytesOfTheSimulatedCore) {
    std::vector<model::Model> models{compiled(reef::test::two_convolutions().value())};
    for (unsigned seed = 0; seed < 8; ++seed)
        models.push_back(compiled(reef::test::random_convolution(seed, seed % 2 == 0).model));
    for (const auto& model : models) {
        const auto plain = reef::test::run_on(model, "rk3588:sim", 7);
        for (const char* device :
             {"rk3588:rknpu?kernel=simulated", "rk3588:rknpu?kernel=simulated&start=chain",
              "rk3588:rocket?kernel=simulated"})
            EXPECT_EQ(reef::test::run_on(model, device, 7), plain) << device;
    }
}

TEST(KernelDrivers, MachinesWithoutAnNpuSayWhatItTakes) {
    for (const char* driver : {"rknpu", "rocket"}) {
        runtime::SessionOptions options;
        options.devices = {{"rk3588:" + std::string(driver) + ":/dev/none"}};
        const auto session =
            runtime::Session::open(compiled(reef::test::two_convolutions().value()), options);
        ASSERT_FALSE(session);
        EXPECT_EQ(session.error().cause, Cause::device_missing);
        EXPECT_THAT(session.error().message(),
                    AllOf(HasSubstr("/dev/none"), HasSubstr("it takes")));
    }
}

TEST(KernelDrivers, ProgramsOfOtherOperatorsSayWhereAndWhatToDo) {
    const auto good = compiled(reef::test::two_convolutions().value());
    const auto error_of = [](const model::Model& model) {
        runtime::SessionOptions options;
        options.devices = {{"rk3588:sim"}};
        const auto session = runtime::Session::open(model, options);
        return session ? std::string("accepted") : session.error().message();
    };
    auto more = good;
    auto& op = more.subgraphs[0].operators[0];
    op.inputs.push_back(op.inputs[0]);
    EXPECT_THAT(error_of(more), AllOf(HasSubstr("inputs: the program has 1, the operator 2"),
                                      HasSubstr("compile the model anew")));
    auto others = good;
    auto& graph = others.subgraphs[0];
    graph.tensors[static_cast<std::size_t>(graph.inputs[0])].type = ElementType::int8;
    EXPECT_THAT(error_of(others), AllOf(HasSubstr("input 0: the program has uint8, the model int8"),
                                        HasSubstr("compile the model anew")));
}

/// Two convolutions on a board of the test's.
class OnABoard : public testing::TestWithParam<KernelDriver> {
  protected:
    OnABoard() {
        const auto model = compiled(reef::test::two_convolutions().value());
        const auto& op = model.subgraphs[0].operators[0];
        auto made = std::make_shared<NpuProgram>();
        made->artifact = read_artifact(op.custom_options.view()).value();
        input.assign(made->artifact.inputs[0].elements(), std::byte{77});
        output.resize(made->artifact.outputs[0].elements());
        program = std::move(made);
    }
    static SimulatedBoard board() { return {.driver = GetParam()}; }
    Result<std::unique_ptr<drm::Port>> open(const std::string& node = {}) {
        return drm::open_port(kernel, GetParam(), node, Start::each_task);
    }
    /// The error that opening, loading or running ends with.
    Error error_with(const SimulatedBoard& a_board) {
        kernel = std::make_shared<SimulatedKernel>(a_board);
        auto port = open();
        if (!port) return port.error();
        const auto device = make_drm_device("board", std::move(*port), Sram::off);
        auto op = device->load(program, control);
        if (!op) return op.error();
        const auto ran = run(**op);
        EXPECT_FALSE(ran);
        return ran ? Error{} : ran.error();
    }
    Status run(graph::DeviceOperator& op) {
        const MutableBytes in = input, out = output;
        return op.run({&in, 1}, {&out, 1});
    }

    /// The program's run behind another kernel.
    Status run_behind(std::shared_ptr<drm::Kernel> other) {
        auto port = REEF_TRY(drm::open_port(std::move(other), GetParam(), {}, Start::each_task));
        const auto device = make_drm_device("board", std::move(port), Sram::off);
        return run(*REEF_TRY(device->load(program, control)));
    }
    /// What a replay of the run ends with.
    std::string difference_to(const drm::Recording& recording) {
        const auto replayed = drm::replaying_kernel(recording);
        // It fails at the difference, unless that is in a buffer's release.
        (void)run_behind(replayed);
        return replayed->difference();
    }

    graph::RunControl control;
    std::shared_ptr<const NpuProgram> program;
    std::vector<std::byte> input, output;
    std::shared_ptr<SimulatedKernel> kernel = std::make_shared<SimulatedKernel>(board());
};

TEST_P(OnABoard, OpeningFailsInWords) {
    auto none = board();
    none.has_node = false;
    EXPECT_EQ(error_with(none).cause, Cause::device_missing);
    auto denied = board();
    denied.open_error = EACCES;
    EXPECT_EQ(error_with(denied).cause, Cause::device_denied);
    EXPECT_THAT(error_with(denied).message(), HasSubstr("group"));
    auto locked = board();
    locked.lock_error = EWOULDBLOCK;
    EXPECT_EQ(error_with(locked).cause, Cause::device_denied);
    EXPECT_THAT(error_with(locked).message(), HasSubstr("another process"));
    EXPECT_EQ(kernel->open_files(), 0U);
    const auto other =
        GetParam() == KernelDriver::rknpu ? KernelDriver::rocket : KernelDriver::rknpu;
    const auto path = drm::find_nodes(*kernel, GetParam()).at(0);
    const auto wrong = drm::open_port(kernel, other, path, Start::each_task);
    kernel->board.lock_error = 0;
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message(), HasSubstr("its driver is"));
}

TEST_P(OnABoard, FailingCallsAreNamed) {
    const bool vendor = GetParam() == KernelDriver::rknpu;
    auto failing = board();
    failing.failing_request = vendor ? drm::rknpu::create_request : drm::rocket::create_request;
    failing.failing_error = ENODEV;
    EXPECT_EQ(error_with(failing).cause, Cause::device_missing);
    EXPECT_THAT(error_with(failing).message(), HasSubstr(vendor ? "MEM_CREATE" : "CREATE_BO"));
    failing.failing_error = EPERM;
    EXPECT_EQ(error_with(failing).cause, Cause::device_denied);
    failing.failing_request = vendor ? drm::rknpu::submit_request : drm::rocket::submit_request;
    failing.failing_error = EINVAL;
    EXPECT_EQ(error_with(failing).cause, Cause::device_failed);
    EXPECT_THAT(error_with(failing).message(), HasSubstr("SUBMIT"));
    failing.failing_request = vendor ? drm::rknpu::sync_request : drm::rocket::prep_request;
    EXPECT_THAT(error_with(failing).message(), HasSubstr(vendor ? "MEM_SYNC" : "PREP_BO"));
}

TEST_P(OnABoard, ShortMapsAreRefusedAndNothingStays) {
    kernel->board.maps_half = true;
    const auto port = open().value();
    const auto buffer = port->allocate(10000);
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.error().cause, Cause::device_failed);
    EXPECT_THAT(buffer.error().message(), HasSubstr("6144 of 12288 bytes"));
    EXPECT_EQ(kernel->buffers(), 0U);
}

TEST_P(OnABoard, BuffersBeyondTheNpusAddressesAreNotAskedFor) {
    kernel->board.failing_request = GetParam() == KernelDriver::rknpu ? drm::rknpu::create_request
                                                                      : drm::rocket::create_request;
    kernel->board.failing_error = ENOMEM;
    const auto port = open().value();
    for (const std::uint64_t bytes : {(std::uint64_t{1} << 32) - 4096, std::uint64_t{5} << 30,
                                      std::numeric_limits<std::uint64_t>::max()}) {
        const auto buffer = port->allocate(bytes);
        ASSERT_FALSE(buffer);
        EXPECT_EQ(buffer.error().cause, Cause::device_failed);
        EXPECT_THAT(buffer.error().message(),
                    AllOf(HasSubstr(std::to_string(bytes)), HasSubstr("32 bits of address"),
                          HasSubstr("/dev/")));
    }
}

TEST_P(OnABoard, BuffersThatDoNotFitLeaveNothing) {
    auto last_pages = board();
    last_pages.first_address = 0xfffff000;
    kernel = std::make_shared<SimulatedKernel>(last_pages);
    const auto port = open().value();
    EXPECT_FALSE(port->allocate(10000));
    EXPECT_EQ(kernel->buffers(), 0U);
}

TEST_P(OnABoard, DeadlinesOfMonthsAreNoShortOnes) {
    constexpr auto months = std::chrono::milliseconds((std::int64_t{1} << 32) + 5000);
    control.begin(months);
    drm::Recording calls;
    ASSERT_TRUE(run_behind(drm::recording_kernel(kernel, calls)));
    int submits = 0;
    for (const auto& call : calls.calls) {
        if (call.request != drm::rknpu::submit_request) continue;
        ++submits;
        drm::rknpu::Submit submit;
        ASSERT_EQ(call.given.size(), sizeof submit);
        std::memcpy(&submit, call.given.data(), sizeof submit);
        EXPECT_EQ(submit.timeout_ms, drm::longest_time_out.count());
    }
    // The other driver waits for buffers, with a deadline of 64 bits.
    EXPECT_EQ(submits > 0, GetParam() == KernelDriver::rknpu);
}

TEST_P(OnABoard, HangsEndWithStateAndAReset) {
    kernel->board.hangs = true;
    const auto device = make_drm_device("board", open().value(), Sram::off);
    const auto op = device->load(program, control).value();
    const auto hung = run(*op);
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().cause, Cause::timed_out) << hung.error().message();
    EXPECT_THAT(
        hung.error().message(),
        AllOf(HasSubstr("operator 0 CONV_2D"), HasSubstr("PC_BASE_ADDRESS 0x"),
              HasSubstr("INTERRUPT_MASK 0x300 (DPU_0, DPU_1)"), HasSubstr("interrupts that came")));
    EXPECT_EQ(device->counters()->recoveries, 1U);
    const auto after = run(*op);
    EXPECT_TRUE(after) << after.error().message();
    EXPECT_EQ(device->counters()->runs, 1U);
}

TEST_P(OnABoard, RecordedAnswersThatAreNotWholeAreDifferences) {
    drm::Recording whole;
    ASSERT_TRUE(run_behind(drm::recording_kernel(kernel, whole)));
    EXPECT_EQ(difference_to(whole), "");
    auto without = whole;
    for (auto& call : without.calls) call.received.clear();
    EXPECT_THAT(difference_to(without), HasSubstr("received: 0 bytes recorded, "));
    auto longer = whole;
    for (auto& call : longer.calls)
        if (!call.received.empty()) call.received.emplace_back();
    EXPECT_THAT(difference_to(longer), HasSubstr("received: "));
    std::size_t cut = 0;
    for (std::size_t i = 0; i < whole.calls.size(); ++i) {
        auto shorter = whole;
        auto& got = shorter.calls[i].got;
        // The nodes' paths and a driver's name have any length.
        if (got.empty() || shorter.calls[i].request == drm::pseudo::nodes) continue;
        got.resize(shorter.calls[i].request == drm::version_request ? 7 : got.size() - 1);
        const std::string call = std::string("call ") + std::to_string(i) + ": ";
        const auto found = difference_to(shorter);
        EXPECT_THAT(found, AllOf(HasSubstr(call), HasSubstr("got: ")));
        ++cut;
    }
    EXPECT_GT(cut, 5U);
}

TEST(RecordedCalls, LeaveAsManyBytesAsTheirStructHas) {
    const auto parsed = [](std::string_view line, std::string_view data) {
        const std::string text = "rk3588-recording-1 rk3588:rknpu\n" + std::string(line) + "\n";
        return drm::parse_recording(as_bytes(text), as_bytes(data));
    };
    EXPECT_TRUE(parsed("c0086440 0 8 8 0 0", "12345678abcdefgh"));
    const auto cut = parsed("c0086440 0 8 7 0 0", "12345678abcdefg");
    ASSERT_FALSE(cut);
    EXPECT_THAT(
        cut.error().message(),
        AllOf(HasSubstr("line 2"), HasSubstr("7 bytes recorded of what it left, 8 needed")));
    EXPECT_FALSE(parsed("c0406400 0 0 7 0 0", "abcdefg")) << "a version without its name's length";
    EXPECT_FALSE(parsed("00000003 0 0 1 0 0", "a")) << "a lock leaves nothing";
    EXPECT_TRUE(parsed("00000001 0 0 1 0 0", "\n")) << "a list of nodes has any length";
}

TEST_P(OnABoard, BuffersAreUsedAgain) {
    const auto port = open().value();
    drm::BufferPool pool(*port);
    std::uint32_t first = 0;
    {
        const auto large = pool.take(40000).value();
        first = large.get().address;
        const auto small = pool.take(10).value();
        EXPECT_EQ(small.get().bytes.size(), 4096U);
    }
    EXPECT_EQ(pool.free_count(), 2U);
    EXPECT_EQ(pool.take(0).value().get().bytes.size(), 4096U) << "the small one, for no bytes";
    EXPECT_EQ(pool.buffer_count(), 2U);
    EXPECT_EQ(pool.take(30000).value().get().address, first);
    EXPECT_NE(pool.take(15000).value().get().address, first) << "more than twice as large";
    EXPECT_EQ(kernel->buffers(), 3U);
}

TEST_P(OnABoard, ThePoolHoldsAtMostTwiceWhatWasInUseAtOnce) {
    const auto port = open().value();
    drm::BufferPool pool(*port);
    constexpr std::uint64_t page = 4096;
    std::uint64_t most = 0;
    for (std::uint64_t pages = 1; pages < 200; pages = pages * 5 / 2 + 1) {
        const auto one = pool.take(pages * page).value();
        const auto other = pool.take(pages * page).value();
        most = std::max(most, 2 * pages * page);
        EXPECT_LE(pool.bytes(), 2 * most);
    }
    for (std::uint64_t pages = 150; pages > 0; pages = pages * 2 / 5) {
        (void)pool.take(pages * page).value();
        EXPECT_LE(pool.bytes(), 2 * most);
    }
    EXPECT_EQ(kernel->buffers(), pool.buffer_count());
    EXPECT_EQ(kernel->buffers(), pool.free_count());
}

INSTANTIATE_TEST_SUITE_P(Drivers, OnABoard,
                         testing::Values(KernelDriver::rknpu, KernelDriver::rocket),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST(VendorsDriver, VersionsOfOtherStructsAreRefused) {
    for (const std::uint32_t version : {802U, 905U, 1000U}) {
        const auto kernel = std::make_shared<SimulatedKernel>(
            SimulatedBoard{.driver = KernelDriver::rknpu, .rknpu_version = version});
        const auto port = drm::open_port(kernel, KernelDriver::rknpu, {}, Start::each_task);
        ASSERT_FALSE(port);
        EXPECT_EQ(port.error().cause, Cause::unsupported);
    }
}

TEST(VendorsDriver, NobodyGetsAddressZeroWhichCostsNoSram) {
    const auto kernel = std::make_shared<SimulatedKernel>(
        SimulatedBoard{.driver = KernelDriver::rknpu, .first_address = 0, .sram_bytes = 4096});
    {
        const auto port = drm::open_port(kernel, KernelDriver::rknpu, {}, Start::each_task).value();
        const auto first = port->allocate(8192, 4096);
        ASSERT_TRUE(first) << first.error().message();
        EXPECT_NE(first->address, 0U);
        EXPECT_EQ(first->sram, 4096U);
        EXPECT_NE(port->allocate(100).value().address, 0U);
        EXPECT_EQ(kernel->buffers(), 3U) << "and one at address 0";
    }
    EXPECT_EQ(kernel->buffers(), 0U);
}

/// A driver that gives every buffer the address 0.
TEST(MainlineDriver, AddressZeroIsRefusedAgain) {
    const auto kernel = std::make_shared<SimulatedKernel>(
        SimulatedBoard{.driver = KernelDriver::rocket, .first_address = 0});
    const auto allocate = [](std::shared_ptr<drm::Kernel> from) {
        const auto port =
            drm::open_port(std::move(from), KernelDriver::rocket, {}, Start::each_task).value();
        return port->allocate(100);
    };
    drm::Recording calls;
    ASSERT_TRUE(allocate(drm::recording_kernel(kernel, calls)));
    for (auto& call : calls.calls) {
        if (call.request != drm::rocket::create_request) continue;
        ASSERT_EQ(call.got.size(), sizeof(drm::rocket::CreateBo));
        const auto address = std::span(call.got).subspan(
            offsetof(drm::rocket::CreateBo, dma_address), sizeof(std::uint64_t));
        std::ranges::fill(address, std::byte{0});
    }
    const auto refused = allocate(drm::replaying_kernel(calls));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("address 0"));
}

TEST(MainlineDriver, NobodyGetsAddressZeroAndTasksOfThePpuAloneAreRefused) {
    const auto kernel = std::make_shared<SimulatedKernel>(
        SimulatedBoard{.driver = KernelDriver::rocket, .first_address = 0});
    const auto port = drm::open_port(kernel, KernelDriver::rocket, {}, Start::each_task).value();
    EXPECT_NE(port->allocate(100).value().address, 0U);
    EXPECT_NE(port->allocate(100).value().address, 0U);
    const drm::SubmittedTask pool{.address = 0x1000, .words = 30, .blocks = Blocks::pooling};
    const std::span<const drm::SubmittedTask> core(&pool, 1);
    const auto refused = port->submit(
        {.cores = {&core, 1}, .reads = {}, .writes = {}, .time_out = std::chrono::seconds(1)});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::unsupported);
    EXPECT_EQ(kernel->kicks(), 0U);
}

}  // namespace
}  // namespace reef::rk3588
