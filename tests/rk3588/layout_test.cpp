#include "reef/rk3588/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "rk3588/captures.h"
#include "support/shared_data.h"

namespace reef::rk3588 {
namespace {

/// Bytes that tell their places apart.
std::vector<std::byte> counted(std::size_t size) {
    std::vector<std::byte> out(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251);
    return out;
}

TEST(Layout, FeatureIndexIsTheKnownFormula) {
    const CubeShape shape{40, 3, 5, 16};
    EXPECT_EQ(feature_index(shape, 0, 0, 0), 0U);
    EXPECT_EQ(feature_index(shape, 15, 0, 0), 15U);
    EXPECT_EQ(feature_index(shape, 16, 0, 0), 3U * 5 * 16);
    EXPECT_EQ(feature_index(shape, 0, 1, 2), (5U + 2) * 16);
    EXPECT_EQ(shape.surfaces(), 3U);
    EXPECT_EQ(shape.elements(), 3U * 3 * 5 * 16);
}

TEST(Layout, CubesGoThereAndBack) {
    for (const auto& [shape, bytes] :
         {std::pair{CubeShape{3, 4, 5, 16}, 1U}, std::pair{CubeShape{33, 2, 3, 16}, 1U},
          std::pair{CubeShape{11, 3, 1, 8}, 2U}, std::pair{CubeShape{6, 2, 2, 4}, 4U}}) {
        const auto nhwc = counted(shape.height * shape.width * shape.channels * bytes);
        std::vector<std::byte> cube(shape.elements() * bytes, std::byte{0xcc});
        to_cube(shape, bytes, nhwc, cube, std::byte{0x55});
        for (std::size_t y = 0; y < shape.height; ++y)
            for (std::size_t x = 0; x < shape.width; ++x)
                for (std::size_t c = 0; c < shape.surfaces() * shape.c2; ++c) {
                    const auto* at = cube.data() + feature_index(shape, c, y, x) * bytes;
                    const auto from = ((y * shape.width + x) * shape.channels + c) * bytes;
                    if (c < shape.channels) {
                        EXPECT_EQ(std::memcmp(at, nhwc.data() + from, bytes), 0);
                    } else {
                        EXPECT_EQ(*at, std::byte{0x55});
                    }
                }
        std::vector<std::byte> back(nhwc.size());
        from_cube(shape, bytes, cube, back);
        EXPECT_EQ(back, nhwc);
    }
}

TEST(Layout, WeightIndicesAreABijection) {
    for (const WeightShape& shape :
         {WeightShape{1, 1, 1, 16}, WeightShape{34, 3, 2, 48}, WeightShape{70, 1, 1, 96}}) {
        std::set<std::size_t> int8, fp16, depthwise;
        for (std::size_t k = 0; k < shape.kernels; ++k)
            for (std::size_t y = 0; y < shape.height; ++y)
                for (std::size_t x = 0; x < shape.width; ++x)
                    for (std::size_t lane = 0; lane < shape.lanes; ++lane) {
                        int8.insert(int8_weight_index(shape, k, y, x, lane));
                        fp16.insert(fp16_weight_index(shape, k, y, x, lane));
                        if (k == 0) depthwise.insert(depthwise_weight_index(shape, 64, y, x, lane));
                    }
        EXPECT_EQ(int8.size(), shape.elements());
        EXPECT_EQ(*int8.rbegin(), shape.elements() - 1);
        EXPECT_EQ(fp16.size(), shape.elements());
        EXPECT_EQ(*fp16.rbegin(), shape.elements() - 1);
        EXPECT_EQ(depthwise.size(), shape.elements() / shape.kernels);
    }
}

// The published formula for 1x1 kernels: [group][block of 32][kernel][lane].
TEST(Layout, WeightsOfAMatrixAreTheKnownFormula) {
    const WeightShape shape{64, 1, 1, 128};
    for (std::size_t k = 0; k < shape.kernels; ++k)
        for (std::size_t c = 0; c < shape.lanes; ++c) {
            EXPECT_EQ(int8_weight_index(shape, k, 0, 0, c),
                      ((k / 32 * 4 + c / 32) * 32 + k % 32) * 32 + c % 32);
            EXPECT_EQ(fp16_weight_index(shape, k, 0, 0, c),
                      ((k / 16 * 4 + c / 32) * 16 + k % 16) * 32 + c % 32);
        }
}

// Memory that an independent driver laid out: its inputs, its weights, its results. Its weights of
// 24 channels have 24 lanes, which the chip's registers contradict; they are left out here.
TEST(Layout, IsTheIndependentDrivers) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared / "data/rknpu/conv_int8"));
    std::size_t inputs = 0, weights = 0;
    for (const auto& file : test::independent_arrays()) {
        const Array* nhwc = file.find("nhwc_input");
        const Array* in = file.find("mem_input");
        ASSERT_TRUE(nhwc != nullptr && in != nullptr) << file.name;
        const CubeShape shape{static_cast<std::size_t>(nhwc->shape[2]),
                              static_cast<std::size_t>(nhwc->shape[0]),
                              static_cast<std::size_t>(nhwc->shape[1]), 16};
        std::vector<std::byte> back(nhwc->data.size());
        from_cube(shape, 1, Bytes(in->data).first(shape.elements()), back);
        for (auto& byte : back) byte ^= std::byte{0x80};
        EXPECT_EQ(back, nhwc->data) << file.name;
        inputs += back.size();
        if (file.name == "ic24") continue;
        const Array* kernel = file.find("weights");
        const Array* packed = file.find("mem_weights");
        ASSERT_TRUE(kernel != nullptr && packed != nullptr) << file.name;
        auto plain = kernel->data;
        for (auto& byte : plain) byte ^= std::byte{0x80};
        const auto dim = [&](std::size_t i) { return static_cast<std::size_t>(kernel->shape[i]); };
        const bool depthwise = kernel->shape.size() == 3;
        const std::size_t channels = dim(kernel->shape.size() - 1);
        const std::size_t lanes = (channels + 15) / 16 * 16;
        std::vector<std::byte> mine;
        const std::byte pad = file.weight_zero ^ std::byte{0x80};
        if (depthwise) {
            const WeightShape form{1, dim(0), dim(1), lanes};
            mine.resize(form.elements());
            pack_int8_depthwise_weights(form, channels, plain, pad, mine);
        } else {
            const WeightShape form{(dim(0) + 1) / 2 * 2, dim(1), dim(2), lanes};
            mine.resize(form.elements());
            pack_int8_weights(form, dim(0), channels, plain, pad, mine);
        }
        ASSERT_LE(mine.size(), packed->data.size()) << file.name;
        EXPECT_TRUE(std::equal(mine.begin(), mine.end(), packed->data.begin())) << file.name;
        weights += mine.size();
    }
    EXPECT_EQ(inputs, 689920U);
    EXPECT_EQ(weights, 709824U);
}

TEST(Weights, OfFp16AreWhereTheIndexSaysAndElsewhereZero) {
    const WeightShape shape{.kernels = 32, .height = 2, .width = 3, .lanes = 32};
    constexpr std::size_t kernels = 5, channels = 7;
    std::vector<std::uint16_t> plain(kernels * shape.height * shape.width * channels);
    std::iota(plain.begin(), plain.end(), std::uint16_t{1});
    std::vector<std::uint16_t> packed(shape.elements(), 0xFFFF);
    pack_fp16_weights(shape, kernels, channels, std::as_bytes(std::span(plain)),
                      std::as_writable_bytes(std::span(packed)));
    std::size_t next = 0;
    for (std::size_t k = 0; k < kernels; ++k)
        for (std::size_t y = 0; y < shape.height; ++y)
            for (std::size_t x = 0; x < shape.width; ++x)
                for (std::size_t c = 0; c < channels; ++c) {
                    std::uint16_t& there = packed[fp16_weight_index(shape, k, y, x, c)];
                    EXPECT_EQ(there, plain[next++]);
                    there = 0;
                }
    EXPECT_EQ(packed, std::vector<std::uint16_t>(shape.elements(), 0));
}

}  // namespace
}  // namespace reef::rk3588
