// In which form a convolution becomes a matrix product: what comparisons of bytes do not show.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "cpu/fast/depthwise_product.h"
#include "cpu/fast/joined_pixels.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "cpu/simd_targets.h"
#include "reef/cpu/placer.h"

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

// What comparisons with the plain kernels would not notice: that none are joined.
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

/// DEPTHWISE_CONV_2D of uint8 with weights of any value, SAME padding, stride 1.
Convolution depthwise_of(std::int64_t taps, std::int64_t channels) {
    Convolution c = of_image(8, taps, 1, channels);
    c.in_channels = channels;
    std::vector<std::byte> weights(static_cast<std::size_t>(taps * taps * channels));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<std::byte>(i);
    c.weights = SharedBytes::copy_of(weights);
    return c;
}

/// The same of h x w taps, around the middle of the weights.
Convolution depthwise_of(std::int64_t h, std::int64_t w, std::int64_t channels) {
    Convolution c = depthwise_of(h * w, channels);
    c.weights =
        SharedBytes::copy_of(c.weights.view().first(static_cast<std::size_t>(h * w * channels)));
    c.weight_zero = 128;
    c.h.taps = h;
    c.w.taps = w;
    return c;
}

// What comparisons with the plain kernels would not notice: that bytes are not multiplied.
TEST(Convolution, DepthwiseKernelsMultiplyBytesWhereTheMachineDoes) {
    const std::map<std::string_view, std::size_t> widest{
        {"AVX3_DL", 64}, {"AVX2_VNNI", 32}, {"NEON_DOTPROD", 16}, {"NEON_I8MM", 16}};
    test::on_every_target([&] {
        const DepthwiseFunctions* functions = depthwise_functions();
        if (functions == nullptr) return;
        EXPECT_EQ(functions->target, simd_target());
        const auto found = widest.find(simd_target());
        EXPECT_EQ(functions->blocks.widest_quads, found == widest.end() ? 0 : found->second);
        const bool quads = functions->blocks.widest_quads != 0;
        const auto laid_out = [&](const Convolution& c) {
            return lay_out_depthwise(c, functions->blocks);
        };
        for (const auto& [h, w] :
             {std::pair{3, 3}, {5, 5}, {7, 7}, {9, 1}, {1, 3}, {2, 2}, {2, 3}}) {
            const PackedDepthwise packed = laid_out(depthwise_of(h, w, 24));
            EXPECT_EQ(packed.blocks[0].vectors, quads ? 4 : 2) << h << " x " << w;
            // Of 64 channels, blocks of no target overlap.
            const PackedDepthwise whole = laid_out(depthwise_of(h, w, 64));
            const std::size_t weights = static_cast<std::size_t>(h * w) * 64;
            EXPECT_LE(3 * whole.weights_bytes, 4 * weights) << h << " x " << w;
        }
        // More than a quarter of zeros, or a second plane.
        for (const auto& [h, w] : {std::pair{1, 1}, {1, 2}, {1, 5}, {5, 1}})
            EXPECT_EQ(laid_out(depthwise_of(h, w, 24)).blocks[0].vectors, 2) << h << " x " << w;
        Convolution apart_of_middle = depthwise_of(5, 5, 24);
        apart_of_middle.weight_zero = 127;
        EXPECT_EQ(laid_out(apart_of_middle).blocks[0].vectors, 2);
        Convolution floats = depthwise_of(3, 24);
        floats.floats.emplace();
        EXPECT_EQ(laid_out(floats).blocks[0].vectors, 2);
        const auto has_flat = [&](const Convolution& c) {
            const PackedDepthwise packed = laid_out(c);
            return packed.pixel_blocks < packed.blocks.size();
        };
        EXPECT_EQ(has_flat(depthwise_of(3, 12)), quads);
        Convolution apart = depthwise_of(3, 12);
        apart.w.stride = 2;
        EXPECT_FALSE(has_flat(apart));
        apart = depthwise_of(3, 12);
        apart.w.dilation = 2;
        EXPECT_FALSE(has_flat(apart));
    });
}

// Kernels of several targets in one process: what one has packed is not another's.
TEST(Convolution, DepthwiseWeightsOfEveryTargetAreItsOwn) {
    for (const auto& [taps, channels] :
         {std::pair{3, 8}, {3, 12}, {3, 24}, {3, 28}, {3, 64}, {5, 24}, {5, 64}}) {
        Convolution shared = depthwise_of(taps, channels);
        if (taps != 3) shared.weight_zero = 128;
        std::vector<PackedDepthwise> kept;
        test::on_every_target([&] {
            const DepthwiseFunctions* functions = depthwise_functions();
            if (functions == nullptr) return;
            Convolution alone = shared;
            alone.weights = {shared.weights.view(), nullptr};
            PackedDepthwise own = lay_out_depthwise(alone, functions->blocks);
            pack_depthwise(alone, own);
            kept.push_back(lay_out_depthwise(shared, functions->blocks));
            pack_depthwise(shared, kept.back());
            ASSERT_EQ(kept.back().weights_bytes, own.weights_bytes);
            EXPECT_TRUE(std::equal(own.weights.get(), own.weights.get() + own.weights_bytes,
                                   kept.back().weights.get()))
                << taps << " x " << taps << " of " << channels << " channels";
        });
    }
}

// 9 x 1 taps are in other groups than 3 x 3.
TEST(Convolution, DepthwiseWeightsOfEveryShapeAreItsOwn) {
    test::on_every_target([&] {
        const DepthwiseFunctions* functions = depthwise_functions();
        if (functions == nullptr) return;
        // Of so many channels no target has blocks of several pixels, which 3 x 3 alone has.
        const Convolution square = depthwise_of(3, 3, 64);
        Convolution line = square;
        line.h.taps = 9;
        line.w.taps = 1;
        PackedDepthwise of_square = lay_out_depthwise(square, functions->blocks);
        pack_depthwise(square, of_square);
        PackedDepthwise of_line = lay_out_depthwise(line, functions->blocks);
        pack_depthwise(line, of_line);
        EXPECT_EQ(of_square.weights.get() == of_line.weights.get(),
                  functions->blocks.widest_quads == 0);
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

// The sum of the products of two bytes of at most 255 with them.
TEST(Convolution, GroupsWithSumsBeyond16BitsAreDivided) {
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto divided = [&](int first, int second) {
            const auto matrix = lay_out_in_bounded_quads(of_pairs(type, {first, second}), 16);
            return matrix ? matrix->divided_groups : std::vector<std::uint32_t>{99};
        };
        const std::vector<std::uint32_t> none, last = {15};
        EXPECT_EQ(divided(64, 64), none);
        EXPECT_EQ(divided(1, 127), none);
        EXPECT_EQ(divided(-128, 127), none);
        EXPECT_EQ(divided(-128, 0), none);
        EXPECT_EQ(divided(-64, -64), none);
        EXPECT_EQ(divided(65, 64), last);
        EXPECT_EQ(divided(2, 127), last);
        EXPECT_EQ(divided(-1, -128), last);
        EXPECT_EQ(divided(-128, -128), last);
    }
}

/// 1 x 1, int8, of which so many groups are to be divided in the first of the blocks of 16
/// channels.
Convolution with_divided(std::int64_t depth, std::int64_t channels, std::size_t groups) {
    Convolution c = of_image(4, 1, depth, channels);
    c.type = ElementType::int8;
    std::vector<std::byte> weights(static_cast<std::size_t>(depth * channels));
    for (std::size_t i = 0; i < groups; ++i) weights[4 * i] = weights[4 * i + 1] = std::byte{100};
    c.weights = SharedBytes::copy_of(weights);
    return c;
}

// A group is 64 bytes of 65536.
TEST(Convolution, ATenthMoreBytesAreDivided) {
    EXPECT_TRUE(lay_out_in_bounded_quads(with_divided(4096, 16, 102), 16));
    EXPECT_FALSE(lay_out_in_bounded_quads(with_divided(4096, 16, 103), 16));
    // Few bytes, as long as that takes less time.
    EXPECT_TRUE(lay_out_in_bounded_quads(with_divided(64, 16, 4), 16));
    EXPECT_FALSE(lay_out_in_bounded_quads(with_divided(64, 16, 5), 16));
    // A depth that fills no four counts, too.
    EXPECT_FALSE(lay_out_in_bounded_quads(with_divided(5, 4096, 0), 16));
    Convolution without = with_divided(64, 16, 0);
    without.weights = {};
    EXPECT_FALSE(lay_out_in_bounded_quads(without, 16));
    // Whole rows.
    EXPECT_FALSE(lay_out_in_bounded_quads(with_divided(512, 7, 0), 16));
    EXPECT_TRUE(lay_out_in_bounded_quads(with_divided(512, 23, 0), 16));
}

// Of depth 62, rows are 64 bytes in fours and 62 in pairs.
TEST(Convolution, BytesAreMultipliedWhereFewWeightsWouldSaturate) {
    test::on_every_target([] {
        const MatrixFunctions* functions = matrix_functions();
        if (functions == nullptr) return;
        const std::string_view target = simd_target();
        const bool has_them = target == "AVX3" || target == "AVX2" || target == "SSE4";
        EXPECT_EQ(functions->in_bounded_quads != nullptr, has_them) << target;
        if (!has_them) return;
        EXPECT_EQ(functions->group, GroupOf::pairs);
        const Convolution small = with_divided(62, 64, 0);
        Convolution large = small;
        const std::vector<std::byte> same(62 * 64, std::byte{100});
        large.weights = SharedBytes::copy_of(same);
        constexpr std::size_t more = 2 * 64;
        const auto conv = [](const Convolution& c) { return fast_conv_2d(c, 1)->packed_bytes(); };
        EXPECT_EQ(conv(small), conv(large) + more);
        const auto dense = [](const Convolution& c) {
            return fast_fully_connected(c, 1)->packed_bytes();
        };
        EXPECT_EQ(dense(small), dense(large) + more);
        const auto hybrid = [](Convolution c) {
            c.floats = FloatSums{.bias = std::vector<float>(64), .clamp = {}};
            return fast_hybrid("conv_2d", {.convolution = std::move(c), .weight_scales = {1}}, 1)
                ->packed_bytes();
        };
        EXPECT_EQ(hybrid(small), hybrid(large) + more);
    });
}

}  // namespace
}  // namespace reef::cpu
