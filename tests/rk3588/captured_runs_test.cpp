// Captured and independently made programs on the simulated chip, byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "reef/base/file.h"
#include "rk3588/captures.h"
#include "rk3588/sim/arithmetic.h"
#include "rk3588/sim/machine.h"
#include "support/shared_data.h"

namespace reef::rk3588::sim {
namespace {

using rk3588::test::ConvolutionVector;

enum class Starts { one_chain, one_a_task };

/// Bytes of a vector's results that are equal after its tasks have run.
Result<std::size_t> equal_bytes(ConvolutionVector vector, const Switches& switches, Starts starts) {
    Memory memory;
    for (auto& buffer : vector.buffers) REEF_CHECK(memory.add(buffer.address, buffer.bytes));
    Machine machine(memory, switches);
    std::size_t tasks = 0;
    for (const auto& start : vector.starts) {
        const std::size_t most = starts == Starts::one_a_task ? 1 : vector.starts.size();
        const auto report = REEF_TRY(machine.run(start.address, start.words, most));
        tasks += report.tasks.size();
        if (report.interrupts == 0 || (report.interrupts & ~0x300U) != 0)
            return fail(Cause::device_failed, "interrupts of the DPU alone are expected");
        if (starts == Starts::one_chain) break;
    }
    if (tasks != vector.starts.size())
        return fail(Cause::device_failed, fmt::format("{} tasks have run", tasks));
    const auto& output = vector.find("output")->bytes;
    const std::size_t pixels = std::size_t{vector.size} * vector.size;
    std::size_t equal = 0;
    for (std::size_t p = 0; p < pixels; ++p)
        for (unsigned c = 0; c < vector.channels; ++c) {
            const auto value = output[(c / 16 * pixels + p) * 16 + c % 16] ^ std::byte{0x80};
            equal += value == vector.expected[p * vector.channels + c] ? 1 : 0;
        }
    return equal;
}

// The streams and memories of an independent driver, and the bytes that the reference arithmetic of
// its vectors gives. Its convolution of 24 channels has as many lanes of weights.
TEST(IndependentStreams, GiveTheExpectedBytes) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data/rknpu"));
    const auto vectors = rk3588::test::convolution_vectors();
    ASSERT_EQ(vectors.size(), 9U);
    std::size_t equal = 0, all = 0;
    for (const auto& vector : vectors) {
        Switches switches;
        if (vector.name == "ic24") switches.lanes = Switches::Lanes::real;
        for (const auto starts : {Starts::one_chain, Starts::one_a_task}) {
            const auto hits = equal_bytes(vector, switches, starts);
            ASSERT_TRUE(hits) << vector.name << ": " << hits.error().message();
            EXPECT_EQ(*hits, vector.expected.size()) << vector.name;
            if (starts == Starts::one_chain) equal += *hits;
        }
        all += vector.expected.size();
    }
    EXPECT_EQ(equal, all);
    EXPECT_EQ(all, 1072708U);
}

// The depthwise convolution of which a real chip's results are known: its captured memory, and
// words as another driver's compiler writes them for that layer.
class CapturedDepthwise : public testing::Test {
  protected:
    static constexpr std::uint32_t input = 0x10000, weights = 0x20000, biases = 0x30000,
                                   output = 0x40000, words = 0x50000;

    static std::vector<std::byte> file(const std::filesystem::path& shared, const char* name) {
        const auto path = shared / "data/rknpu/captures/teflon_dw_c64_8x8_k3" / name;
        const auto contents = read_file(path.string());
        EXPECT_TRUE(contents) << path;
        return contents ? std::vector<std::byte>(contents->view().begin(), contents->view().end())
                        : std::vector<std::byte>{};
    }

    /// The registers, with the byte of the padding as it is given.
    static RegisterSet registers(std::uint32_t pad) {
        RegisterSet set;
        set.set<"CNA_CONV_CON1.CONV_MODE">(3);
        set.set<"CNA_CONV_CON2.FEATURE_GRAINS">(52);
        set.set<"CNA_CONV_CON3.CONV_X_STRIDE">(1);
        set.set<"CNA_CONV_CON3.CONV_Y_STRIDE">(1);
        set.set<"CNA_DATA_SIZE0.DATAIN_WIDTH">(8);
        set.set<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(8);
        set.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL">(63);
        set.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL">(64);
        set.set<"CNA_DATA_SIZE2.DATAOUT_WIDTH">(8);
        set.set<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">(64);
        set.set<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">(576);
        set.set<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">(576);
        set.set<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">(3);
        set.set<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(3);
        set.set<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(1);
        set.set<"CNA_CBUF_CON0.DATA_BANK">(1);
        set.set<"CNA_CBUF_CON0.WEIGHT_BANK">(11);
        set.set<"CNA_CBUF_CON1.DATA_ENTRIES">(8);
        set.set<"CNA_CVT_CON0.CVT_BYPASS">(1);
        set.set<"CNA_PAD_CON0.PAD_LEFT">(1);
        set.set<"CNA_PAD_CON0.PAD_TOP">(1);
        set.set<"CNA_PAD_CON1.PAD_VALUE">(pad);
        set.set<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(input);
        set.set<"CNA_DMA_CON1.LINE_STRIDE">(32);
        set.set<"CNA_DMA_CON2.SURF_STRIDE">(64 - 32);
        set.set<"CNA_FC_DATA_SIZE0.DMA_WIDTH">(8);
        set.set<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">(8);
        set.set<"CNA_FC_DATA_SIZE1.DMA_CHANNEL">(64);
        set.set<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(weights);
        set.set<"CORE_MISC_CFG.QD_EN">(1);
        set.set<"CORE_MISC_CFG.DW_EN">(1);
        set.set<"CORE_DATAOUT_SIZE_0.DATAOUT_WIDTH">(7);
        set.set<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">(7);
        set.set<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">(63);
        add_dpu(set);
        return set;
    }
    static void add_dpu(RegisterSet& set) {
        set.write(register_named("DPU_FEATURE_MODE_CFG"), 0x1fc);
        set.set<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(output);
        set.set<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(64);
        set.set<"DPU_SURFACE_ADD.SURF_ADD">(4 * 64);
        set.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(7);
        set.set<"DPU_DATA_CUBE_HEIGHT.HEIGHT">(7);
        set.set<"DPU_DATA_CUBE_CHANNEL.CHANNEL">(63);
        set.set<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">(63);
        set.write(register_named("DPU_BS_CFG"), 0x20150);
        set.set<"DPU_BS_OW_CFG.SIZE_E_0">(3);
        set.set<"DPU_BS_OW_CFG.SIZE_E_1">(3);
        set.set<"DPU_BS_OW_CFG.SIZE_E_2">(3);
        // The driver took the model's signed bytes for unsigned ones: weights with zero point 0.
        set.set<"DPU_BS_OW_OP.OW_OP">(128);
        set.set<"DPU_WDMA_SIZE_0.CHANNEL_WDMA">(63);
        set.set<"DPU_WDMA_SIZE_1.WIDTH_WDMA">(7);
        set.set<"DPU_WDMA_SIZE_1.HEIGHT_WDMA">(7);
        set.write(register_named("DPU_BN_CFG"), 0x53);
        set.write(register_named("DPU_EW_CFG"), 0x383);
        set.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(1);
        set.set<"DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET">(5 - 128);
        // 0.03657235 * 0.00079638 / 0.00691164 as that driver writes it.
        set.set<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">(17675);
        set.set<"DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT">(22);
        set.set<"DPU_RDMA_DATA_CUBE_WIDTH.WIDTH">(7);
        set.set<"DPU_RDMA_DATA_CUBE_HEIGHT.HEIGHT">(7);
        set.set<"DPU_RDMA_DATA_CUBE_CHANNEL.CHANNEL">(63);
        set.set<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">(1);
        set.set<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">(biases);
        set.set<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">(1);
        set.write(register_named("DPU_RDMA_FEATURE_MODE_CFG"), 0x7816);
    }

    /// Results that are equal to the real chip's.
    static Result<std::size_t> equal(const std::filesystem::path& shared, std::uint32_t pad,
                                     const Switches& switches = {}) {
        auto in = file(shared, "mesa-input-000-000.bin");
        auto kernel = file(shared, "mesa-weights-000-000.bin");
        auto bias = file(shared, "mesa-biases-000-000.bin");
        std::vector<std::byte> out(4096);
        auto task = REEF_TRY(task_words(registers(pad), Blocks::convolution));
        Memory memory;
        REEF_CHECK(memory.add(input, in));
        REEF_CHECK(memory.add(weights, kernel));
        REEF_CHECK(memory.add(biases, bias));
        REEF_CHECK(memory.add(output, out));
        REEF_CHECK(memory.add(words, std::as_writable_bytes(std::span(task))));
        Machine machine(memory, switches);
        REEF_TRY(machine.run(words, task.size()));
        const auto chip = file(shared, "mesa-output-000-000.bin");
        std::size_t same = 0;
        for (std::size_t i = 0; i < out.size(); ++i) same += out[i] == chip.at(i) ? 1 : 0;
        return same;
    }
};

TEST_F(CapturedDepthwise, EveryByteIsTheRealChips) {
    REEF_SHARED_OR_SKIP(shared);
    const auto hits = equal(shared, 0x7e);
    ASSERT_TRUE(hits) << hits.error().message();
    EXPECT_EQ(*hits, 4096U);
}

// What the capture proves: with the byte repeated, borders of odd channels would differ.
TEST_F(CapturedDepthwise, ThePaddingsSecondByteIsSeen) {
    REEF_SHARED_OR_SKIP(shared);
    const auto hits = equal(shared, 0x7e7e);
    ASSERT_TRUE(hits) << hits.error().message();
    EXPECT_EQ(*hits, 3869U);
}

/// The memory of a running vendor program in fp16: a convolution of ones, and its results times
/// two.
class CapturedMemory : public testing::Test {
  protected:
    struct Buffer {
        const char* file;
        std::uint32_t address;
        std::vector<std::byte> bytes;
    };
    /// The buffers by the addresses that the program's words use.
    void load(const std::filesystem::path& shared) {
        for (auto& buffer : buffers) {
            const auto path = shared / "data/rknpu/captures/phhusson_x2" / buffer.file;
            const auto contents = read_file(path.string());
            ASSERT_TRUE(contents) << path;
            buffer.bytes.assign(contents->view().begin(), contents->view().end());
            ASSERT_TRUE(memory.add(buffer.address, buffer.bytes)) << buffer.file;
        }
    }
    std::vector<Buffer> buffers = {{"gem1.bin", 0xfff0e000, {}},
                                   {"gem2.bin", 0xffc60000, {}},
                                   {"gem4.bin", 0xffd50000, {}},
                                   {"gem5.bin", 0xffc68000, {}},
                                   {"gem6.bin", 0xffbc0000, {}}};
    Memory memory;
};

// The program for one core: tasks 0 and 1. The tasks behind them reorder the output, which this
// session did not run.
TEST_F(CapturedMemory, OneCoresProgramMakesTheOutput) {
    REEF_SHARED_OR_SKIP(shared);
    load(shared);
    const auto middle = buffers[2].bytes, output = buffers[4].bytes;
    std::ranges::fill(buffers[2].bytes, std::byte{0});
    std::ranges::fill(buffers[4].bytes, std::byte{0});
    Machine machine(memory);
    const auto report = machine.run(0xffc60000, 110, 2);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(report->tasks.size(), 2U);
    EXPECT_EQ(buffers[2].bytes, middle);
    EXPECT_EQ(buffers[4].bytes, output);
}

// The program for three cores: each convolves a third of the rows, then one doubles them all.
TEST_F(CapturedMemory, ThreeCoresProgramMakesTheOutput) {
    REEF_SHARED_OR_SKIP(shared);
    load(shared);
    const auto middle = buffers[2].bytes, output = buffers[4].bytes;
    std::ranges::fill(buffers[2].bytes, std::byte{0});
    std::ranges::fill(buffers[4].bytes, std::byte{0});
    for (const std::uint32_t task : {0xffc63980U, 0xffc64700U, 0xffc64a80U}) {
        Machine machine(memory);
        const auto report = machine.run(task, 110, 1);
        ASSERT_TRUE(report) << report.error().message();
    }
    EXPECT_EQ(buffers[2].bytes, middle);
    Machine machine(memory);
    const auto report = machine.run(0xffc63d00, 73, 1);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(buffers[4].bytes, output);
}

// A vendor's program for an fp16 addition of ten pixels of eight channels: its words with the
// buffers' addresses added, for one core (task 0), two (1 and 2) and three (3 to 5).
TEST(VendorAddition, OfEveryPartIsTheSum) {
    REEF_SHARED_OR_SKIP(shared);
    const auto tasks =
        rk3588::test::json_streams(shared / "data/rknpu/captures/liej6799_add_tasks.json");
    ASSERT_EQ(tasks.size(), 6U);
    std::vector<std::uint16_t> a(96), b(96), expected(96);
    for (std::size_t i = 0; i < 80; ++i) {
        const float x = static_cast<float>(i) * 0.375F - 11, y = 3.0F - static_cast<float>(i * i);
        a[i] = half_of_float(x);
        b[i] = half_of_float(y);
        expected[i] = half_of_float(float_of_half(a[i]) + float_of_half(b[i]));
    }
    for (const auto& [first, last] : {std::pair{0U, 1U}, {1U, 3U}, {3U, 6U}}) {
        std::vector<std::uint16_t> out(96);
        Memory memory;
        ASSERT_TRUE(memory.add(0x1000, std::as_writable_bytes(std::span(a))));
        ASSERT_TRUE(memory.add(0x2000, std::as_writable_bytes(std::span(b))));
        ASSERT_TRUE(memory.add(0x3000, std::as_writable_bytes(std::span(out))));
        for (unsigned t = first; t < last; ++t) {
            auto task = read_task(tasks[t].bytes());
            ASSERT_TRUE(task) << task.error().message();
            auto& set = task->registers;
            for (const auto& [index, base] :
                 {std::pair{register_named("DPU_RDMA_SRC_BASE_ADDR"), 0x1000U},
                  {register_named("DPU_RDMA_EW_BASE_ADDR"), 0x2000U},
                  {register_named("DPU_DST_BASE_ADDR"), 0x3000U}})
                set.write(index, set.value(index) + base);
            auto words = task_words(set, task->blocks);
            ASSERT_TRUE(words) << words.error().message();
            ASSERT_TRUE(memory.add(0x4000 + 0x1000 * t, std::as_writable_bytes(std::span(*words))));
            Machine machine(memory);
            const auto report = machine.run(0x4000 + 0x1000 * t, words->size());
            ASSERT_TRUE(report) << t << ": " << report.error().message();
            memory.remove(0x4000 + 0x1000 * t);
        }
        EXPECT_EQ(out, expected) << "tasks " << first << " to " << last;
    }
}

// Tasks that reorder data are not modelled, and say so.
TEST_F(CapturedMemory, AReorderingTaskIsRefusedByName) {
    REEF_SHARED_OR_SKIP(shared);
    load(shared);
    Machine machine(memory);
    const auto report = machine.run(0xffc60600, 73, 1);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().cause, Cause::unsupported);
    EXPECT_NE(report.error().message().find("int16"), std::string::npos)
        << report.error().message();
}

}  // namespace
}  // namespace reef::rk3588::sim
