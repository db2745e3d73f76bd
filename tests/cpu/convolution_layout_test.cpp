// In which form a convolution becomes a matrix product: what comparisons of bytes do not show.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cpu/fast/joined_pixels.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "cpu/simd_targets.h"

namespace reef::cpu {
namespace {

/// A convolution of one image, SAME padding, stride 1.
Convolution of_image(std::int64_t width, std::int64_t taps, std::int64_t depth,
                     std::int64_t channels) {
    Convolution c;
    c.h = c.w = {.in = width, .out = width, .taps = taps, .pad = taps / 2};
    c.in_channels = c.depth = depth;
    c.out_channels = channels;
    c.multipliers.resize(static_cast<std::size_t>(channels));
    c.bias.resize(static_cast<std::size_t>(channels));
    return c;
}

// What the comparisons above would not notice: that none are joined.
TEST(Convolution, PixelsOfFewChannelsAreJoined) {
    test::on_every_target([] {
        const MatrixFunctions* functions = matrix_functions();
        if (functions == nullptr) return;
        const auto joins = [&](const Convolution& c) {
            return pixels_to_join(c, functions->group, functions->widest_block);
        };
        EXPECT_GE(joins(of_image(64, 1, 16, 1)), 4);
        EXPECT_GE(joins(of_image(64, 3, 3, 3)), 2);
        EXPECT_GE(joins(of_image(64, 7, 1, 2)), 2);
        // A whole number of them makes the image: of 1 x 1 taps, of all of it.
        EXPECT_EQ(joins(of_image(61, 3, 3, 3)), 1);
        EXPECT_EQ(joins(of_image(49, 1, 16, 1)), 7);
        EXPECT_EQ(joins(of_image(64, 1, 16, 64)), 1);
        EXPECT_EQ(joins(of_image(64, 3, 256, 32)), 1);
        EXPECT_EQ(joins(of_image(64, 1, 16, 0)), 1);
        EXPECT_EQ(joins(of_image(0, 1, 16, 1)), 1);
        EXPECT_EQ(joins(of_image(64, 1, 0, 1)), 1);
        Convolution apart = of_image(64, 3, 3, 3);
        apart.w.dilation = 2;
        EXPECT_EQ(joins(apart), 1);
        apart = of_image(64, 1, 3, 3);
        apart.w.stride = 2;
        apart.w.out = 32;
        EXPECT_EQ(joins(apart), 1);
        Convolution floats = of_image(64, 1, 16, 1);
        floats.floats = FloatSums{.bias = {0}, .clamp = {}};
        EXPECT_EQ(joins(floats), 1);
    });
}

/// 1 x 1, of 64 to 16 channels, whose weights are `pair` and, but for the first channel, zeros.
Convolution of_pairs(ElementType type, std::array<int, 2> pair) {
    Convolution c = of_image(4, 1, 64, 16);
    c.type = type;
    const int zero = type == ElementType::uint8 ? 128 : 0;
    c.weight_zero = zero;
    std::vector<std::byte> weights(64 * 16, static_cast<std::byte>(zero));
    for (std::size_t i = 0; i < 2; ++i) weights[62 + i] = static_cast<std::byte>(zero + pair[i]);
    c.weights = SharedBytes::copy_of(weights);
    return c;
}

// The products of two bytes of at most 255 with them.
TEST(Convolution, GroupsWithSumsBeyond16BitsAreMultipliedTwice) {
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto again = [&](int first, int second) {
            const auto matrix =
                lay_out_matrix(of_pairs(type, {first, second}), GroupOf::bounded_quads, 16);
            return std::vector<std::uint32_t>(matrix.again);
        };
        const std::vector<std::uint32_t> none, last = {15};
        EXPECT_EQ(again(64, 64), none);
        EXPECT_EQ(again(1, 127), none);
        EXPECT_EQ(again(-128, 127), none);
        EXPECT_EQ(again(-128, 0), none);
        EXPECT_EQ(again(-64, -64), none);
        EXPECT_EQ(again(65, 64), last);
        EXPECT_EQ(again(2, 127), last);
        EXPECT_EQ(again(-1, -128), last);
        EXPECT_EQ(again(-128, -128), last);
    }
}

TEST(Convolution, BytesAreMultipliedWhereFewWeightsWouldSaturate) {
    test::on_every_target([] {
        const MatrixFunctions* functions = matrix_functions();
        if (functions == nullptr || functions->in_bounded_quads == nullptr) return;
        EXPECT_EQ(functions->group, GroupOf::pairs);
        const auto group_for = [&](const Convolution& c) { return functions->suiting(c).group; };
        Convolution c = of_pairs(ElementType::uint8, {127, 127});
        EXPECT_EQ(group_for(c), GroupOf::bounded_quads);
        c.weights = {};
        EXPECT_EQ(group_for(c), GroupOf::pairs);
        const std::vector<std::byte> large(64 * 16, std::byte{255});
        c.weights = SharedBytes::copy_of(large);
        EXPECT_EQ(group_for(c), GroupOf::pairs);
    });
}

}  // namespace
}  // namespace reef::cpu
