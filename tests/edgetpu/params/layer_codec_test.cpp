// The layer codec against cases computed by hand, a plain reimplementation of its formulas, and
// its own inverse.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "reef/edgetpu/params.h"

namespace reef::edgetpu {
namespace {

using testing::ElementsAre;

std::uint32_t word_at(const std::vector<std::byte>& blob, std::size_t offset) {
    std::uint32_t value;
    std::memcpy(&value, blob.data() + offset, 4);
    return value;
}

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937& random) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = std::byte{static_cast<std::uint8_t>(random())};
    return bytes;
}

/// 1 to `largest`.
std::uint32_t at_most(std::mt19937& random, std::uint32_t largest) {
    return static_cast<std::uint32_t>(1 + random() % largest);
}

/// Plain values of a layer, random, with the vectors that its layout has.
struct RandomLayer {
    LayerLayout layout;
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
    std::vector<float> multipliers;

    RandomLayer(const LayerShape& shape, const LayerVectors& vectors, std::mt19937& random)
        : layout(layout_of(shape, vectors).value()),
          weights(random_bytes(shape.weight_count(), random)) {
        for (std::uint32_t i = 0; i < shape.out_channels; ++i) {
            if (vectors.biases) biases.push_back(static_cast<std::int32_t>(random()));
            if (vectors.multipliers) {
                multipliers.push_back(std::ldexp(static_cast<float>(random() % 1000), -12));
            }
        }
    }

    [[nodiscard]] std::vector<std::byte> encoded(WeightType type, std::int32_t zero_point) const {
        std::vector<std::byte> blob(layout.size_bytes, std::byte{0xAA});
        const LayerValues values{type, weights, zero_point, biases, multipliers};
        EXPECT_TRUE(encode_layer(layout, values, blob));
        return blob;
    }
};

TEST(LayerCodec, PlacesEveryByteOfAOneChannelConvolution) {
    std::mt19937 random(1);
    RandomLayer layer({LayerKind::convolution, 1, 1, 3, 1}, {}, random);
    layer.weights = {std::byte{0x7F}, std::byte{0xC0}, std::byte{0x00}};
    const auto blob = layer.encoded(WeightType::int8, 0);
    ASSERT_EQ(blob.size(), 16U);
    EXPECT_EQ(word_at(blob, 0), 0x808040FFU);
    for (const std::size_t lane : {4U, 8U, 12U}) EXPECT_EQ(word_at(blob, lane), 0x80808080U);
}

TEST(LayerCodec, PutsDepthwiseWeightsOnTheDiagonal) {
    std::mt19937 random(1);
    RandomLayer layer({LayerKind::depthwise, 1, 1, 5, 5}, {false, true, false}, random);
    layer.weights = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
    const auto blob = layer.encoded(WeightType::uint8, 9);
    ASSERT_EQ(blob.size(), 64U);
    EXPECT_EQ(word_at(blob, 0), static_cast<std::uint32_t>(layer.biases[0]));
    EXPECT_EQ(word_at(blob, 16), 0x09090901U);
    EXPECT_EQ(word_at(blob, 20), 0x09090209U);
    EXPECT_EQ(word_at(blob, 24), 0x09030909U);
    EXPECT_EQ(word_at(blob, 28), 0x04090909U);
    EXPECT_EQ(word_at(blob, 48), 0x09090905U);
    EXPECT_EQ(word_at(blob, 52), 0x09090909U);
}

TEST(LayerCodec, PadsAPartlyUsedGroup) {
    std::mt19937 random(3);
    const RandomLayer one({LayerKind::convolution, 1, 1, 4, 17}, {true, true, true}, random);
    EXPECT_EQ(one.layout.lanes, 32U);
    const auto blob = one.encoded(WeightType::int8, 0);
    float padding;
    const auto multiplier = [&](std::size_t lane) {
        std::memcpy(&padding, blob.data() + one.layout.multipliers + lane * 4, 4);
        return padding;
    };
    EXPECT_EQ(multiplier(19), one.multipliers[0]);
    EXPECT_EQ(multiplier(20), 0.0F);
    EXPECT_EQ(word_at(blob, one.layout.biases + 17 * 4), 0U);
    EXPECT_EQ(word_at(blob, one.layout.zero_points + 19 * 4), 128U);
    EXPECT_EQ(word_at(blob, one.layout.zero_points + 20 * 4), 0U);
    EXPECT_EQ(word_at(blob, one.layout.weights + 19 * 4), 0x80808080U);
    EXPECT_EQ(word_at(blob, one.layout.weights + 20 * 4), 0U);

    const RandomLayer two({LayerKind::convolution, 1, 1, 4, 72}, {true, true, true}, random);
    EXPECT_EQ(two.layout.groups, 2U);
    const auto last = two.encoded(WeightType::int8, 0);
    EXPECT_EQ(word_at(last, two.layout.group_bytes + two.layout.multipliers + 8 * 4),
              std::bit_cast<std::uint32_t>(1.0F));
}

TEST(LayerCodec, GivesOneOutputChannelItsLanes) {
    EXPECT_EQ(layout_of({LayerKind::convolution, 3, 3, 1, 1}, {}).value().lanes, 4U);
    EXPECT_EQ(layout_of({LayerKind::fully_connected, 1, 1, 8, 1}, {}).value().lanes, 16U);
    EXPECT_EQ(layout_of({LayerKind::widening, 7, 7, 1, 8}, {}).value().lanes, 16U);
    EXPECT_EQ(layout_of({LayerKind::convolution, 1, 1, 8, 65}, {}).value().groups, 2U);
}

TEST(LayerCodec, RefusesWhatItCannotLayOut) {
    EXPECT_FALSE(layout_of({LayerKind::convolution, 0, 1, 1, 1}, {}));
    EXPECT_FALSE(layout_of({LayerKind::depthwise, 3, 3, 2, 4}, {}));
    EXPECT_FALSE(layout_of({LayerKind::convolution, 65535, 65535, 65535, 65535}, {}));
    EXPECT_FALSE(layout_of({LayerKind::convolution, 1, 1, 4294967295U, 4294967295U}, {}));
    const auto layout = layout_of({LayerKind::convolution, 1, 1, 4, 4}, {}).value();
    std::vector<std::byte> blob(layout.size_bytes);
    const std::vector<std::byte> weights(15);
    const auto status = encode_layer(layout, LayerValues{.weights = weights}, blob);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().what, "15 weights, the layer has 16");
}

TEST(LayerCodec, AgreesWithTheFormulaOnRandomLayers) {
    std::mt19937 random(7);
    for (int round = 0; round < 400; ++round) {
        const auto kind = static_cast<LayerKind>(random() % 5);
        const bool connected = kind == LayerKind::fully_connected;
        LayerShape shape{kind, connected ? 1 : at_most(random, 3),
                         connected ? 1 : at_most(random, 3), at_most(random, 100),
                         at_most(random, 200)};
        if (kind == LayerKind::depthwise) shape.in_channels = shape.out_channels;
        if (kind == LayerKind::widening) shape.in_channels = 1;
        if (kind == LayerKind::multiplied)
            shape.out_channels = shape.in_channels * at_most(random, 5);
        const LayerVectors vectors{random() % 2 == 0, random() % 2 == 0, random() % 2 == 0};
        const RandomLayer layer(shape, vectors, random);
        const auto blob = layer.encoded(WeightType::uint8, 77);
        const std::uint64_t taps = shape.taps();
        for (std::size_t i = 0; i < layer.weights.size(); ++i) {
            const bool by_channel = shape.is_diagonal() || kind == LayerKind::widening;
            const std::size_t out =
                by_channel ? i % shape.out_channels : i / (taps * shape.in_channels);
            const std::size_t tap =
                by_channel ? i / shape.out_channels : i / shape.in_channels % taps;
            const std::size_t in = by_channel ? 0 : i % shape.in_channels;
            ASSERT_EQ(blob[layer.layout.weight_offset(static_cast<std::uint32_t>(out), tap,
                                                      static_cast<std::uint32_t>(in))],
                      layer.weights[i]);
        }
        std::vector<std::byte> weights(layer.weights.size());
        std::vector<std::int32_t> biases(layer.biases.size());
        std::vector<float> multipliers(layer.multipliers.size());
        std::vector<std::int32_t> zero_points(vectors.zero_points ? shape.out_channels : 0);
        ASSERT_TRUE(decode_layer(layer.layout, blob,
                                 {WeightType::uint8, weights, biases, multipliers, zero_points}));
        EXPECT_EQ(weights, layer.weights);
        EXPECT_EQ(biases, layer.biases);
        EXPECT_EQ(multipliers, layer.multipliers);
        for (const std::int32_t zero_point : zero_points) ASSERT_EQ(zero_point, 77);
    }
}

/// Channels 0 and 1 make three results each: four of these in the first row, two in the second.
TEST(LayerCodec, PutsMultipliedWeightsAtTheirChannel) {
    std::mt19937 random(1);
    RandomLayer layer({LayerKind::multiplied, 1, 1, 2, 6}, {}, random);
    for (std::size_t i = 0; i < 6; ++i) layer.weights[i] = static_cast<std::byte>(i + 1);
    const auto blob = layer.encoded(WeightType::uint8, 9);
    const std::vector<std::uint32_t> rows = {0x09090901U, 0x09090902U, 0x09090903U, 0x09090409U,
                                             0x09090509U, 0x09090609U, 0x09090909U, 0x09090909U};
    ASSERT_EQ(blob.size(), rows.size() * 4);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(word_at(blob, 4 * i), rows[i]) << i;
    EXPECT_FALSE(layout_of({LayerKind::multiplied, 1, 1, 4, 6}, {}));
}

TEST(LayerCodec, QuantisesAsRoundingHalvesAwayFromZero) {
    std::mt19937 random(11);
    for (int round = 0; round < 60; ++round) {
        const LayerShape shape{LayerKind::convolution, at_most(random, 2), 1, at_most(random, 90),
                               at_most(random, 90)};
        const auto layout = layout_of(shape, {}).value();
        std::vector<float> weights(shape.weight_count());
        std::vector<float> scales(round % 2 == 0 ? 1 : shape.out_channels);
        for (float& scale : scales) scale = std::ldexp(1.0F, -static_cast<int>(random() % 4));
        std::vector<std::byte> expected(weights.size());
        const std::size_t row = shape.taps() * shape.in_channels;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            // Quarters of a step: every fourth or so is a tie.
            const float scale = scales[scales.size() == 1 ? 0 : i / row];
            weights[i] = static_cast<float>(static_cast<int>(random() % 1200) - 600) / 4 * scale;
            const float q = std::round(std::clamp(weights[i] / scale, -127.0F, 127.0F));
            expected[i] = static_cast<std::byte>(static_cast<std::int8_t>(q));
        }
        std::vector<std::byte> real(layout.size_bytes), integer(layout.size_bytes);
        ASSERT_TRUE(encode_layer(layout, RealLayerValues{weights, scales, {}, {}}, real));
        ASSERT_TRUE(encode_layer(layout, LayerValues{.weights = expected}, integer));
        EXPECT_EQ(real, integer);
    }
}

TEST(LayerCodec, RefusesWhatIsNoNumberAndCountsWhatItLimits) {
    for (const LayerShape shape : {LayerShape{LayerKind::fully_connected, 1, 1, 64, 16},
                                   LayerShape{LayerKind::convolution, 3, 3, 5, 7},
                                   LayerShape{LayerKind::depthwise, 3, 3, 16, 16}}) {
        const auto layout = layout_of(shape, {}).value();
        std::vector<float> weights(shape.weight_count(), 0.49999997F);
        std::vector<std::byte> blob(layout.size_bytes, std::byte{7});
        const auto before = blob;
        const float one = 1;
        const RealLayerValues values{weights, {&one, 1}, {}, {}};
        for (const float bad : {NAN, INFINITY, -INFINITY})
            for (const std::size_t index : {std::size_t{1}, weights.size() - 1}) {
                weights[index] = bad;
                const auto status = encode_layer(layout, values, blob);
                ASSERT_FALSE(status);
                EXPECT_EQ(status.error().cause, Cause::bad_argument);
                EXPECT_NE(status.error().message().find(fmt::format("index {}", index)),
                          std::string::npos);
                EXPECT_EQ(blob, before);
                weights[index] = 0;
            }
        EXPECT_EQ(limited_weights(layout, values), 0U);
        weights[2] = 127.4F;
        weights[3] = -128;
        weights[4] = 1e30F;
        EXPECT_EQ(limited_weights(layout, values), 2U);
        ASSERT_TRUE(encode_layer(layout, values, blob));
        // Of another scale for each channel.
        std::vector<float> scales(shape.out_channels, 1e30F);
        EXPECT_EQ(limited_weights(layout, {weights, scales, {}, {}}), 0U);
        for (const float scale : {0.0F, -1.0F, NAN, INFINITY})
            EXPECT_FALSE(encode_layer(layout, RealLayerValues{weights, {&scale, 1}, {}, {}}, blob));
    }
}

TEST(Constants, FollowTheirTables) {
    std::vector<std::byte> blob(softmax_table_size(10, false));
    ASSERT_EQ(blob.size(), 576U);
    ASSERT_TRUE(encode_softmax_table(10, 0.5F, false, blob));
    EXPECT_EQ(word_at(blob, 128 + 4), 0U);
    EXPECT_EQ(word_at(blob, 128 + 8), 0x80000000U);
    EXPECT_EQ(word_at(blob, 384), std::bit_cast<std::uint32_t>(0.5F));

    // Output 0 is the first channel of the first word, output 1 the second of the second.
    const LayerLayout layout =
        layout_of({LayerKind::fully_connected, 1, 1, 8, 2}, {.biases = true}).value();
    std::vector<std::byte> selection(layout.size_bytes);
    ASSERT_EQ(selection.size(), 192U);
    ASSERT_TRUE(encode_selection(layout, std::vector<std::uint32_t>{0, 5}, selection));
    EXPECT_EQ(selection[64], std::byte{1});
    EXPECT_EQ(selection[128 + 4 + 1], std::byte{1});
    EXPECT_EQ(std::ranges::count(selection, std::byte{0}), 190);
    EXPECT_FALSE(encode_selection(layout, std::vector<std::uint32_t>{0, 8}, selection));
    EXPECT_FALSE(encode_selection(layout, std::vector<std::uint32_t>{0}, selection));

    std::vector<std::byte> factors(channel_multipliers_size(6));
    ASSERT_EQ(factors.size(), 128U);
    ASSERT_TRUE(encode_channel_multipliers(std::vector<float>{1, 2, 3, 4, 5, 6}, factors));
    EXPECT_EQ(word_at(factors, 12), std::bit_cast<std::uint32_t>(4.0F));
    EXPECT_EQ(word_at(factors, 64 + 4), std::bit_cast<std::uint32_t>(6.0F));
    EXPECT_EQ(word_at(factors, 64 + 8), 0U);

    std::vector<std::byte> sub(subtrahend_size(3));
    const std::vector<std::byte> constant(3, std::byte{0xFF});
    ASSERT_TRUE(encode_subtrahend(WeightType::int8, constant, sub));
    EXPECT_EQ(word_at(sub, 8), static_cast<std::uint32_t>(-127));
    EXPECT_EQ(word_at(sub, 12), 0U);
}

TEST(Constants, FactorsOfASumAreTheBestOf15Bits) {
    EXPECT_EQ(sum_factors(1.0F, 1.0F), (SumFactors{1, 1}));
    EXPECT_EQ(sum_factors(0.75F, 0.5F), (SumFactors{3, 2}));
    // An addition of movenet: found in its compiled program.
    EXPECT_EQ(sum_factors(0.039368849F, 0.03740035F), (SumFactors{32759, 31121}));
    EXPECT_EQ(sum_factors(1.0F, 1e9F), (SumFactors{1, 32767}));
    std::mt19937 random(7);
    std::uniform_real_distribution<float> scale(0.01F, 1.0F);
    for (int i = 0; i < 20; ++i) {
        const float a = scale(random), b = scale(random);
        const SumFactors best = sum_factors(a, b);
        const double wanted = static_cast<double>(a) / b;
        const double found = std::abs(static_cast<double>(best.first) / best.second - wanted);
        for (int q = 1; q <= 32767; ++q) {
            const double p = std::round(wanted * q);
            if (p < 1 || p > 32767) continue;
            ASSERT_GE(std::abs(p / q - wanted) + 1e-15, found);
        }
    }
}

TEST(Constants, ClampIsInFloat32Steps) {
    const ClampLimits relu = clamp_limits(0.99411762F, 0, 0, 255, ActivationLimits::relu);
    EXPECT_EQ(relu.min, 0.0F);
    EXPECT_EQ(relu.max, 255.00002F);
    const ClampLimits none = clamp_limits(0.5F, 129, 0, 255, ActivationLimits::none);
    EXPECT_EQ(none, (ClampLimits{-129, 126}));
}

}  // namespace
}  // namespace reef::edgetpu
