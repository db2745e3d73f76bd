// Every field of every register of a task that runs, set to other values: the run is refused, ends
// with a fault, or has the same results. Fields that are numbers of the computation may change
// them, and those are listed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "rk3588/sim/watched_registers.h"
#include "rk3588/small_tasks.h"

namespace reef::rk3588::sim {
namespace {

using rk3588::test::flying_copy;
using rk3588::test::flying_function;
using rk3588::test::pooling;
using rk3588::test::SmallConvolution;
using rk3588::test::SmallProgram;

/// Numbers from -most to most: sums stay inside int8, so that each one counts.
std::vector<std::byte> noise(std::size_t size, int most) {
    std::mt19937 random(7);
    std::vector<std::byte> out(size);
    for (auto& byte : out)
        byte = static_cast<std::byte>(
            static_cast<int>(random() % (2U * static_cast<unsigned>(most) + 1)) - most);
    return out;
}

/// A task with its memory. The last buffer holds its results.
struct Prepared {
    SmallProgram program;
    RegisterSet registers;
    std::uint32_t blocks = 0, results = 0;
};
using Prepare = void (*)(Prepared&);

void convolution(Prepared& p) {
    SmallConvolution c;
    c.width = c.height = 6;
    c.channels = 32;
    c.kernel_width = c.kernel_height = 3;
    c.pad_left = c.pad_top = c.pad_right = c.pad_bottom = 1;
    c.features = p.program.add(noise(6 * 6 * 32, 3));
    c.weights = p.program.add(noise(std::size_t{32} * 9 * 32, 1));
    std::vector<std::int32_t> biases(32);
    for (int i = 0; i < 32; ++i) biases[static_cast<std::size_t>(i)] = i - 16;
    c.biases = p.program.add_numbers(biases);
    p.results = c.results = p.program.add(std::vector<std::byte>(6 * 6 * 32));
    p.registers = c.registers();
    p.blocks = Blocks::convolution;
}

void flying(Prepared& p) {
    const auto from = p.program.add(noise(6 * 6 * 32, 60));
    p.results = p.program.add(std::vector<std::byte>(6 * 6 * 32));
    p.registers = flying_copy(6, 6, 32, from, p.results);
    p.blocks = Blocks::flying;
}

/// Its tables are loaded before.
void function(Prepared& p) {
    const auto from = p.program.add(noise(6 * 6 * 32, 100));
    p.results = p.program.add(std::vector<std::byte>(6 * 6 * 32));
    p.registers = flying_function(6, 6, 32, from, p.results);
    p.blocks = Blocks::flying;
    ASSERT_TRUE(
        p.program.run({{-100, -50, -10, 0, 3}, {7, 20, 21, 50, 90}}, p.registers, p.blocks));
}

void pool(Prepared& p) {
    const auto from = p.program.add(noise(6 * 6 * 16, 60));
    p.results = p.program.add(std::vector<std::byte>(3 * 3 * 16));
    p.registers = pooling(6, 6, 16, 2, 2, 1, from, p.results);
    p.blocks = Blocks::pooling;
}

struct Case {
    const char* name;
    Prepare prepare;
    std::set<std::string> numbers;  ///< fields that may change the results
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.name;
}

/// The results; nothing when the run was refused or ended with a fault.
std::optional<std::vector<std::byte>> results_of(Prepare prepare, RegisterIndex index,
                                                 std::uint32_t value) {
    Prepared p;
    prepare(p);
    p.registers.write(index, value);
    const auto run = p.program.run(p.registers, p.blocks);
    if (!run) return std::nullopt;
    return p.program.at(p.results);
}

std::set<std::uint32_t> other_values(std::uint32_t value, const hw::FieldInfo& field) {
    const unsigned shift = field.position - first_value_bit;
    const std::uint32_t ones = field.width == 32 ? ~0U : (1U << field.width) - 1;
    const std::uint32_t rest = value & ~(ones << shift), old = value >> shift & ones;
    std::set<std::uint32_t> values;
    for (const std::uint32_t other :
         {0U, 1U, 2U, old ^ 1U, old ^ (ones ^ ones >> 1), old + 1, old - 1, ones, ones >> 1})
        if ((other & ones) != old) values.insert(rest | (other & ones) << shift);
    return values;
}

class MutatedFields : public testing::TestWithParam<Case> {};

TEST_P(MutatedFields, AreRefusedOrFaultsOrWithoutEffect) {
    Prepared good;
    GetParam().prepare(good);
    ASSERT_TRUE(good.program.run(good.registers, good.blocks));
    const auto want = good.program.at(good.results);
    std::size_t runs = 0, refused = 0, equal = 0;
    std::set<std::string> changing;
    for (RegisterIndex i = 0; i < register_count; ++i) {
        if ((block_of(i) & good.blocks) == 0) continue;
        const auto& info = spec::instructions[i];
        for (const hw::FieldInfo& field : info.fields) {
            // The word's target stands above its value.
            if (field.position < first_value_bit || field.position >= first_value_bit + 32)
                continue;
            const std::uint32_t old = good.registers.is_written(i) ? good.registers.value(i) : 0;
            for (const std::uint32_t value : other_values(old, field)) {
                const auto got = results_of(GetParam().prepare, i, value);
                ++runs;
                refused += got ? 0 : 1;
                equal += got == want ? 1 : 0;
                if (got && *got != want)
                    changing.insert(fmt::format("{}.{}", info.name, field.name));
            }
        }
    }
    fmt::print("{}: {} runs, {} refused or faults, {} equal, {} fields that change results\n",
               GetParam().name, runs, refused, equal, changing.size());
    EXPECT_EQ(changing, GetParam().numbers) << fmt::format("\"{}\"", fmt::join(changing, "\", \""));
}

INSTANTIATE_TEST_SUITE_P(
    Tasks, MutatedFields,
    testing::Values(
        Case{"convolution",
             convolution,
             {"CNA_CONV_CON3.ATROUS_X_DILATION",
              "CNA_CONV_CON3.ATROUS_Y_DILATION",
              "CNA_CONV_CON3.CONV_X_STRIDE",
              "CNA_CONV_CON3.CONV_Y_STRIDE",
              "CNA_DMA_CON1.LINE_STRIDE",
              "CNA_DMA_CON2.SURF_STRIDE",
              "CNA_PAD_CON0.PAD_LEFT",
              "CNA_PAD_CON0.PAD_TOP",
              "CNA_PAD_CON1.PAD_VALUE",
              "CORE_CLIP_TRUNCATE.CLIP_TRUNCATE",
              "DPU_BS_CFG.BS_ALU_BYPASS",
              "DPU_BS_CFG.BS_ALU_SRC",
              "DPU_BS_CFG.BS_BYPASS",
              "DPU_BS_CFG.BS_MUL_BYPASS",
              "DPU_BS_CFG.BS_RELU_BYPASS",
              "DPU_BS_OW_OP.OW_OP",
              "DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL",
              "DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET",
              "DPU_OUT_CVT_SCALE.OUT_CVT_SCALE",
              "DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT"}},
        Case{"flying",
             flying,
             {"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL", "DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET",
              "DPU_OUT_CVT_SCALE.OUT_CVT_SCALE", "DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT"}},
        Case{"function",
             function,
             {"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL", "DPU_EW_CFG.EW_BYPASS",
              "DPU_LUT_CFG.LUT_HYBRID_PRIORITY", "DPU_LUT_CFG.LUT_OFLOW_PRIORITY",
              "DPU_LUT_CFG.LUT_UFLOW_PRIORITY", "DPU_LUT_INFO.LUT_LE_INDEX_SELECT",
              "DPU_LUT_INFO.LUT_LO_INDEX_SELECT", "DPU_LUT_LE_SLOPE_SCALE.LUT_LE_SLOPE_UFLOW_SCALE",
              "DPU_LUT_LE_SLOPE_SHIFT.LUT_LE_SLOPE_UFLOW_SHIFT", "DPU_LUT_LE_START.LUT_LE_START",
              "DPU_LUT_LO_END.LUT_LO_END", "DPU_LUT_LO_SLOPE_SCALE.LUT_LO_SLOPE_OFLOW_SCALE",
              "DPU_LUT_LO_SLOPE_SHIFT.LUT_LO_SLOPE_OFLOW_SHIFT", "DPU_LUT_LO_START.LUT_LO_START",
              "DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET", "DPU_OUT_CVT_SCALE.OUT_CVT_SCALE",
              "DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT"}},
        Case{"pooling",
             pool,
             {"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT", "PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH",
              "PPU_OPERATION_MODE_CFG.POOLING_METHOD", "PPU_POOLING_KERNEL_CFG.KERNEL_HEIGHT",
              "PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_HEIGHT",
              "PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_WIDTH", "PPU_POOLING_KERNEL_CFG.KERNEL_WIDTH",
              "PPU_POOLING_PADDING_CFG.PAD_LEFT", "PPU_POOLING_PADDING_CFG.PAD_TOP",
              "PPU_RDMA_SRC_LINE_STRIDE.SRC_LINE_STRIDE"}}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace reef::rk3588::sim
