// The simulated engines against definitions written here, on small and random tasks.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "reef/rk3588/layout.h"
#include "rk3588/sim/arithmetic.h"
#include "rk3588/sim/watched_registers.h"
#include "rk3588/small_tasks.h"

namespace reef::rk3588::sim {
namespace {

using rk3588::test::flying_copy;
using rk3588::test::pooling;
using rk3588::test::SmallConvolution;
using rk3588::test::SmallProgram;

std::vector<std::byte> random_features(std::size_t size, std::mt19937& random) {
    std::vector<std::byte> out(size);
    for (auto& byte : out) byte = static_cast<std::byte>(static_cast<int>(random() % 15) - 7);
    return out;
}

std::int8_t value(std::byte byte) {
    return static_cast<std::int8_t>(byte);
}

/// A convolution by its definition on rows of pixels: zero point of the weights, padding by value.
struct Definition {
    const SmallConvolution& c;
    const std::vector<std::byte>& nhwc;
    const std::vector<std::byte>& ohwi;
    const std::vector<std::int32_t>& bias;

    [[nodiscard]] std::int8_t at(unsigned x, unsigned y, unsigned k) const {
        std::int64_t sum = bias[k];
        for (unsigned ky = 0; ky < c.kernel_height; ++ky)
            for (unsigned kx = 0; kx < c.kernel_width; ++kx) {
                const int row =
                    static_cast<int>(y * c.stride + ky * c.dilation) - static_cast<int>(c.pad_top);
                const int column =
                    static_cast<int>(x * c.stride + kx * c.dilation) - static_cast<int>(c.pad_left);
                const unsigned first = c.depthwise ? k : 0;
                const unsigned last = c.depthwise ? k + 1 : c.channels;
                for (unsigned i = first; i < last; ++i) {
                    const std::size_t tap = ky * c.kernel_width + kx;
                    const std::size_t from =
                        c.depthwise ? tap * c.channels + k
                                    : (k * c.kernel_width * c.kernel_height + tap) * c.channels + i;
                    const bool inside = row >= 0 && column >= 0 &&
                                        row < static_cast<int>(c.height) &&
                                        column < static_cast<int>(c.width);
                    const int feature = inside
                                            ? value(nhwc[(static_cast<std::size_t>(row) * c.width +
                                                          static_cast<std::size_t>(column)) *
                                                             c.channels +
                                                         i])
                                            : static_cast<std::int8_t>(c.pad_value);
                    sum += feature * (value(ohwi[from]) - c.weight_zero);
                }
            }
        return saturated8(sum);
    }
};

/// Runs the convolution on random data and counts results that are not the definition's.
std::size_t wrong_results(SmallConvolution c, std::mt19937& random) {
    const auto nhwc = random_features(c.width * c.height * c.channels, random);
    const unsigned kernels = c.depthwise ? 1 : c.kernels;
    const auto ohwi =
        random_features(kernels * c.kernel_width * c.kernel_height * c.channels, random);
    std::vector<std::int32_t> bias(c.results_channels());
    for (auto& b : bias) b = static_cast<std::int32_t>(random() % 41) - 20;
    const CubeShape in{c.channels, c.height, c.width, 16};
    const CubeShape out{c.results_channels(), c.out_height(), c.out_width(), 16};
    // What lies in lanes beyond the channels must not matter.
    std::vector<std::byte> cube(in.elements());
    to_cube(in, 1, nhwc, cube, std::byte{0x6b});
    const WeightShape form{kernels, c.kernel_height, c.kernel_width, c.lanes()};
    std::vector<std::byte> packed(form.elements());
    const auto zero = static_cast<std::byte>(c.weight_zero);
    if (c.depthwise) {
        pack_int8_depthwise_weights(form, c.channels, ohwi, zero, packed);
    } else {
        pack_int8_weights(form, kernels, c.channels, ohwi, zero, packed);
    }
    SmallProgram program;
    c.features = program.add(cube);
    c.weights = program.add(packed);
    c.biases = program.add_numbers(bias);
    c.results = program.add(std::vector<std::byte>(out.elements()));
    const auto report = program.run(c.registers(), Blocks::convolution);
    EXPECT_TRUE(report) << report.error().message();
    if (!report) return nhwc.size();
    const Definition definition{c, nhwc, ohwi, bias};
    std::size_t wrong = 0;
    for (unsigned y = 0; y < out.height; ++y)
        for (unsigned x = 0; x < out.width; ++x)
            for (unsigned k = 0; k < out.channels; ++k)
                wrong += value(program.at(c.results)[feature_index(out, k, y, x)]) !=
                                 definition.at(x, y, k)
                             ? 1
                             : 0;
    return wrong;
}

TEST(Convolutions, OfRandomShapesAreTheirDefinition) {
    std::mt19937 random(5);
    const auto pick = [&](unsigned low, unsigned high) {
        return low + random() % (high - low + 1);
    };
    for (int trial = 0; trial < 150; ++trial) {
        SmallConvolution c;
        c.depthwise = trial % 3 == 0;
        c.kernel_width = pick(1, 4);
        c.kernel_height = pick(1, 4);
        c.stride = pick(1, 3);
        c.dilation = pick(1, 2);
        c.width = pick((c.kernel_width - 1) * c.dilation + 1, 12);
        c.height = pick((c.kernel_height - 1) * c.dilation + 1, 12);
        c.channels = pick(1, 70);
        c.kernels = pick(1, 40) * 2;
        c.pad_left = pick(0, 3);
        c.pad_top = pick(0, 3);
        c.pad_right = pick(0, 3);
        c.pad_bottom = pick(0, 3);
        const auto pad = static_cast<std::uint8_t>(random() % 9 - 4);
        c.pad_value = pad * 0x01010101U;
        // Lanes beyond a depthwise convolution's channels have no partner that cancels them, but no
        // result of theirs is written, either.
        c.weight_zero = static_cast<std::int32_t>(random() % 7) - 3;
        EXPECT_EQ(wrong_results(c, random), 0U)
            << "trial " << trial << ": " << c.width << "x" << c.height << "x" << c.channels;
    }
}

TEST(Convolutions, PaddingOfOddChannelsFollowsItsSwitch) {
    for (const bool second : {false, true}) {
        SmallProgram program;
        SmallConvolution c{.width = 1, .height = 1, .pad_left = 1};
        c.pad_value = 0x0301;
        c.features = program.add(std::vector<std::byte>(16));
        c.weights = program.add(std::vector<std::byte>(16 * 32, std::byte{1}));
        c.biases = program.add(std::vector<std::byte>(128));
        c.results = program.add(std::vector<std::byte>(2 * 2 * 16));
        Switches switches;
        if (second) switches.direct_pad_lanes = Switches::PadLanes::second_byte;
        ASSERT_TRUE(program.run(c.registers(), Blocks::convolution, switches));
        EXPECT_EQ(value(program.at(c.results)[0]), second ? 8 * 1 + 8 * 3 : 16);
    }
}

/// A convolution of one pixel with features 1, whose sums are the weights' sums.
class OnePixel : public testing::Test {
  protected:
    OnePixel() {
        c.features = program.add(std::vector<std::byte>(16, std::byte{1}));
        std::vector<std::byte> packed(16 * 32);
        for (unsigned k = 0; k < 32; ++k) packed[16 * k] = static_cast<std::byte>(k * 3 - 40);
        c.weights = program.add(packed);
        c.biases = program.add(std::vector<std::byte>(128));
        c.results = program.add(std::vector<std::byte>(32));
    }
    [[nodiscard]] int sum_of(unsigned k) const { return static_cast<int>(k * 3) - 40; }
    [[nodiscard]] std::int8_t result(unsigned k) { return value(program.at(c.results)[k]); }

    SmallProgram program;
    SmallConvolution c{.width = 1, .height = 1};
};

TEST_F(OnePixel, FactorsByChannelComeFromGroupsOfEight) {
    std::vector<std::byte> groups(4 * 64);
    for (unsigned k = 0; k < 32; ++k) {
        const auto bias = static_cast<std::int32_t>(k);
        const auto factor = static_cast<std::int16_t>(1000 + 100 * k);
        std::memcpy(groups.data() + k / 8 * 64 + k % 8 * 4, &bias, 4);
        std::memcpy(groups.data() + k / 8 * 64 + 48 + k % 8 * 2, &factor, 2);
    }
    c.biases = program.add(groups);
    auto set = c.registers();
    set.write(register_named("DPU_BS_CFG"), 0x20140);
    set.set<"DPU_BS_MUL_CFG.BS_MUL_SRC">(1);
    set.set<"DPU_BS_MUL_CFG.BS_MUL_SHIFT_VALUE">(10);
    set.set<"DPU_DATA_FORMAT.BS_MUL_SHIFT_VALUE_NEG">(10);
    set.set<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">(7);
    const auto report = program.run(set, Blocks::convolution);
    ASSERT_TRUE(report) << report.error().message();
    for (unsigned k = 0; k < 32; ++k) {
        const std::int64_t product = (sum_of(k) + std::int64_t{k}) * (1000 + 100 * k);
        EXPECT_EQ(result(k), saturated8(shifted(product, 10, Rounding::half_to_even))) << k;
    }
}

TEST_F(OnePixel, NegativeProductsHaveAShiftOfTheirOwn) {
    auto set = c.registers();
    set.write(register_named("DPU_BS_CFG"), 0x20140);
    set.set<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(8);
    set.set<"DPU_BS_MUL_CFG.BS_MUL_SHIFT_VALUE">(3);
    set.set<"DPU_DATA_FORMAT.BS_MUL_SHIFT_VALUE_NEG">(4);
    ASSERT_TRUE(program.run(set, Blocks::convolution));
    for (unsigned k = 0; k < 32; ++k)
        EXPECT_EQ(result(k),
                  sum_of(k) >= 0 ? sum_of(k) : shifted(sum_of(k) * 8, 4, Rounding::half_to_even));
}

TEST_F(OnePixel, OutputRoundingIsTheRegistersOrTheSwitchs) {
    auto set = c.registers();
    set.set<"DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT">(1);
    set.set<"DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET">(5);
    ASSERT_TRUE(program.run(set, Blocks::convolution));
    for (unsigned k = 0; k < 32; ++k)
        EXPECT_EQ(result(k), shifted(sum_of(k), 1, Rounding::half_to_even) + 5);
    set.set<"DPU_OUT_CVT_SHIFT.CVT_ROUND">(1);
    ASSERT_TRUE(program.run(set, Blocks::convolution));
    for (unsigned k = 0; k < 32; ++k)
        EXPECT_EQ(result(k), shifted(sum_of(k), 1, Rounding::half_away) + 5);
}

TEST_F(OnePixel, ReluHasAnUpperBound) {
    auto set = c.registers();
    set.write(register_named("DPU_BN_CFG"), 0x92);
    set.set<"DPU_BN_RELUX_CMP_VALUE.BN_RELUX_CMP_DAT">(21);
    ASSERT_TRUE(program.run(set, Blocks::convolution));
    for (unsigned k = 0; k < 32; ++k) EXPECT_EQ(result(k), std::clamp(sum_of(k), 0, 21));
}

TEST_F(OnePixel, SumsCanBeWrittenAsInt32) {
    c.results = program.add(std::vector<std::byte>(128));
    auto set = c.registers();
    set.set<"DPU_DATA_FORMAT.OUT_PRECISION">(4);
    set.set<"DPU_BS_OW_CFG.SIZE_E_0">(7);
    set.set<"DPU_BS_OW_CFG.SIZE_E_1">(7);
    set.set<"DPU_BS_OW_CFG.SIZE_E_2">(7);
    set.set<"DPU_SURFACE_ADD.SURF_ADD">(8);
    const auto report = program.run(set, Blocks::convolution);
    ASSERT_TRUE(report) << report.error().message();
    for (unsigned k = 0; k < 32; ++k) {
        std::int32_t sum;
        std::memcpy(&sum, program.at(c.results).data() + 4 * k, 4);
        EXPECT_EQ(sum, sum_of(k));
    }
}

TEST(Flying, AddsTwoCubesWithGains) {
    std::mt19937 random(3);
    const CubeShape shape{20, 3, 5, 16};
    SmallProgram program;
    const auto a = random_features(shape.elements(), random);
    const auto b = random_features(shape.elements(), random);
    const auto from = program.add(a), other = program.add(b);
    const auto to = program.add(std::vector<std::byte>(shape.elements()));
    auto set = flying_copy(5, 3, 20, from, to);
    set.write(register_named("DPU_BS_CFG"), 0x20040);
    set.set<"DPU_BS_ALU_CFG.BS_ALU_OPERAND">(-3);
    set.set<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(20000);
    set.write(register_named("DPU_EW_CFG"), 0x904202c0);
    set.set<"DPU_EW_CVT_OFFSET_VALUE.EW_OP_CVT_OFFSET">(2);
    set.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(15000);
    set.set<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">(16384);
    set.set<"DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT">(28);
    set.write(register_named("DPU_RDMA_ERDMA_CFG"), 0x40000004);
    set.set<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">(other);
    set.set<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">(15);
    const auto report = program.run(set, Blocks::flying);
    ASSERT_TRUE(report) << report.error().message();
    for (std::size_t c = 0; c < 20; ++c)
        for (std::size_t p = 0; p < 15; ++p) {
            const auto at = feature_index(shape, c, p / 5, p % 5);
            const std::int64_t sum =
                (value(a[at]) - 3) * std::int64_t{20000} + (value(b[at]) + 2) * std::int64_t{15000};
            EXPECT_EQ(value(program.at(to)[at]),
                      saturated8(shifted(sum * 16384, 28, Rounding::half_to_even)));
        }
}

TEST(Pooling, OfBytesIsItsDefinition) {
    std::mt19937 random(9);
    for (const std::uint32_t method : {0U, 1U, 2U})
        for (const bool down : {false, true}) {
            const CubeShape in{20, 7, 6, 16}, out{20, 3, 2, 16};
            SmallProgram program;
            const auto cube = random_features(in.elements(), random);
            const auto from = program.add(cube);
            const auto to = program.add(std::vector<std::byte>(out.elements()));
            Switches switches;
            if (down) switches.average_rounding = Switches::AverageRounding::down;
            const auto report =
                program.run(pooling(6, 7, 20, 2, 3, method, from, to), Blocks::pooling, switches);
            ASSERT_TRUE(report) << report.error().message();
            EXPECT_EQ(report->interrupts, 1U << 10);
            for (std::size_t c = 0; c < 20; ++c)
                for (std::size_t y = 0; y < 2; ++y)
                    for (std::size_t x = 0; x < 2; ++x) {
                        int sum = 0, most = -128, least = 127;
                        for (std::size_t k = 0; k < 4; ++k) {
                            const int v =
                                value(cube[feature_index(in, c, 3 * y + k / 2, 3 * x + k % 2)]);
                            sum += v;
                            most = std::max(most, v);
                            least = std::min(least, v);
                        }
                        const auto mean = down ? sum >> 2 : shifted(sum, 2, Rounding::half_to_even);
                        const auto expected = method == 0 ? mean : method == 1 ? most : least;
                        // Two rows of the output: the surface's pitch is that of 2 x 2 pixels.
                        const CubeShape made{20, 2, 2, 16};
                        EXPECT_EQ(value(program.at(to)[feature_index(made, c, y, x)]), expected);
                    }
        }
}

TEST(Arithmetic, HalvesGoThereAndBack) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const bool nan = (half & 0x7c00U) == 0x7c00U && (half & 0x3ffU) != 0;
        if (nan) {
            EXPECT_TRUE(std::isnan(float_of_half(half)));
        } else {
            EXPECT_EQ(half_of_float(float_of_half(half)), half);
        }
    }
    EXPECT_EQ(half_of_float(1.0F + 0x1p-11F), 0x3c00U);      // a tie, to even
    EXPECT_EQ(half_of_float(1.0F + 3 * 0x1p-11F), 0x3c02U);  // a tie, to even
    EXPECT_EQ(half_of_float(65519.0F), 0x7bffU);
    EXPECT_EQ(half_of_float(65520.0F), 0x7c00U);
    EXPECT_EQ(half_of_float(-0x1p-25F), 0x8000U);
}

TEST(Arithmetic, ShiftsRoundToTheNearest) {
    EXPECT_EQ(shifted(5, 1, Rounding::half_to_even), 2);
    EXPECT_EQ(shifted(7, 1, Rounding::half_to_even), 4);
    EXPECT_EQ(shifted(-5, 1, Rounding::half_to_even), -2);
    EXPECT_EQ(shifted(-7, 1, Rounding::half_to_even), -4);
    EXPECT_EQ(shifted(5, 1, Rounding::half_away), 3);
    EXPECT_EQ(shifted(-5, 1, Rounding::half_away), -3);
    EXPECT_EQ(shifted(-5, 0, Rounding::half_away), -5);
}

}  // namespace
}  // namespace reef::rk3588::sim
