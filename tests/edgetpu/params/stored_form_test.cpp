// Layers that are stored otherwise than the plain model has them.
#include "edgetpu/params/stored_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "edgetpu/params/fixed_bytes.h"
#include "reef/model/builder.h"

namespace reef::edgetpu {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Convolution {
    std::int32_t size, in_channels, kernel, stride, out_channels;
    model::Padding padding = model::Padding::same;
    std::int32_t row = 0;  ///< of a RESHAPE behind it
};

/// A model of one convolution of squares, all weights 1.
model::Model model_of(const Convolution& c) {
    const std::int32_t size = c.padding == model::Padding::same
                                  ? (c.size + c.stride - 1) / c.stride
                                  : (c.size - c.kernel + c.stride) / c.stride;
    const auto quantization = model::per_tensor(0.5F, 100);
    model::Builder builder("one convolution");
    const auto in =
        builder.input("in", ElementType::uint8, {1, c.size, c.size, c.in_channels}, quantization);
    const std::vector<std::uint8_t> weights(
        static_cast<std::size_t>(c.out_channels * c.kernel * c.kernel * c.in_channels), 1);
    const auto kernel = builder.constant<std::uint8_t>(
        "weights", ElementType::uint8, {c.out_channels, c.kernel, c.kernel, c.in_channels}, weights,
        quantization);
    const std::vector<std::int32_t> biases(static_cast<std::size_t>(c.out_channels), 7);
    const auto bias = builder.constant<std::int32_t>("bias", ElementType::int32, {c.out_channels},
                                                     biases, model::per_tensor(0.25F, 0));
    auto out =
        builder.tensor("out", ElementType::uint8, {1, size, size, c.out_channels}, quantization);
    builder.add(
        model::Op::conv_2d, {in, kernel, bias}, {out},
        model::Conv2dOptions{.padding = c.padding, .stride_h = c.stride, .stride_w = c.stride});
    if (c.row != 0) {
        const std::vector<std::int32_t> shape = {1, size * size * c.out_channels / c.row, c.row};
        const auto rows = builder.tensor("rows", ElementType::uint8, shape, quantization);
        builder.add(model::Op::reshape, {out}, {rows}, model::ReshapeOptions{shape});
        out = rows;
    }
    builder.output(out);
    return builder.finish().value();
}

ParameterPart part_of(const model::Model& plain) {
    const std::vector<bool> on_chip(plain.subgraphs.front().operators.size(), true);
    return plan_parameters(plain, on_chip).value().at(0);
}

TEST(StoredForm, TapsThatOnlyPaddingMeetsAreLeftOut) {
    using model::Padding::valid;
    const auto form = [](const Convolution& c) { return part_of(model_of(c)).form; };
    // A window of 3 at 0 on an input of 2, as in the detector.
    const auto detector = form({2, 64, 3, 2, 128});
    EXPECT_EQ(std::pair(detector.first_h, detector.stored_h), std::pair(0U, 2U));
    EXPECT_EQ(std::pair(detector.first_w, detector.stored_w), std::pair(0U, 2U));
    // One window at -1 on an input of 1.
    const auto one = form({1, 8, 3, 1, 4});
    EXPECT_EQ(std::pair(one.first_h, one.stored_h), std::pair(1U, 1U));
    // Windows at -2 and -1 on an input of 2 read three of five taps.
    const auto five = form({2, 8, 5, 1, 4});
    EXPECT_EQ(std::pair(five.first_h, five.stored_h), std::pair(1U, 3U));
    for (const Convolution& whole : {Convolution{5, 16, 3, 2, 8},
                                     {3, 16, 3, 2, 8},
                                     {10, 16, 3, 2, 8},
                                     {3, 16, 3, 1, 8, valid},
                                     {1, 9, 1, 1, 8}})
        EXPECT_TRUE(form(whole).as_is()) << whole.size;
}

TEST(StoredForm, RowsOfAReshapeArePaddedToFourChannels) {
    const auto scores = part_of(model_of({2, 8, 1, 1, 273, model::Padding::same, 91}));
    EXPECT_EQ(scores.form.row, 91U);
    EXPECT_EQ(scores.form.stored_channel(90), 90U);
    EXPECT_EQ(scores.form.stored_channel(91), 92U);
    EXPECT_EQ(scores.form.stored_channel(182), 184U);
    EXPECT_EQ(scores.layout.shape.out_channels, 276U);
    EXPECT_EQ(scores.out_channels(), 273U);
    // Rows of four, and rows of all channels, need nothing.
    EXPECT_TRUE(part_of(model_of({2, 8, 1, 1, 24, model::Padding::same, 4})).form.as_is());
    EXPECT_TRUE(part_of(model_of({2, 8, 1, 1, 91, model::Padding::same, 91})).form.as_is());
}

/// The values of a layer, as the plain model has them.
struct Values {
    Values(const ParameterPart& part, std::mt19937& random)
        : weights(part.weight_count()),
          biases(part.layout.vectors.biases ? part.out_channels() : 0) {
        for (auto& weight : weights) weight = static_cast<std::byte>(random());
        for (auto& bias : biases) bias = static_cast<std::int32_t>(random());
    }
    [[nodiscard]] LayerValues given() const {
        return {WeightType::uint8, weights, 100, biases, {}};
    }
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;
};

TEST(StoredForm, WhatIsWrittenIsRead) {
    std::mt19937 random(5);
    for (const Convolution& c : {Convolution{2, 64, 3, 2, 128},
                                 {2, 7, 3, 2, 20},
                                 {2, 8, 5, 1, 70},
                                 {4, 32, 3, 1, 64},
                                 {3, 8, 1, 1, 182, model::Padding::same, 91},
                                 {2, 16, 3, 2, 15, model::Padding::same, 5}}) {
        const auto plain = model_of(c);
        std::vector<ParameterPart> parts = {part_of(plain)};
        const auto blocks = in_blocks(parts[0]);
        ASSERT_TRUE(blocks);
        if (*blocks) parts.push_back(**blocks);
        for (const ParameterPart& part : parts) {
            const Values values(part, random);
            std::vector<std::byte> blob(part.size_bytes);
            ASSERT_TRUE(encode_stored(part, values.given(), blob));
            EXPECT_TRUE(has_structure_of(plain, part, blob));
            // Taps that are not stored keep what is there.
            auto weights = values.weights;
            std::vector<std::int32_t> biases(values.biases.size());
            ASSERT_TRUE(decode_stored(part, blob, {WeightType::uint8, weights, biases, {}, {}}));
            EXPECT_EQ(weights, values.weights);
            EXPECT_EQ(biases, values.biases);
            std::ranges::fill(weights, std::byte{100});
            ASSERT_TRUE(decode_stored(part, blob, {WeightType::uint8, weights, biases, {}, {}}));
            std::vector<std::byte> again(part.size_bytes);
            ASSERT_TRUE(encode_stored(part, {WeightType::uint8, weights, 100, biases, {}}, again));
            EXPECT_EQ(again, blob);
        }
    }
}

TEST(StoredForm, BlocksHoldAllTapsOfAFewChannels) {
    const auto plain = model_of({4, 8, 3, 1, 16});
    const auto part = in_blocks(part_of(plain)).value().value();
    EXPECT_EQ(part.form.block_words, 1U);
    std::mt19937 random(6);
    const Values values(part, random);
    std::vector<std::byte> blob(part.size_bytes);
    ASSERT_TRUE(encode_stored(part, values.given(), blob));
    for (const auto [out, tap, in] : {std::array<std::size_t, 3>{0, 0, 0}, {3, 8, 2}, {15, 4, 7}}) {
        const std::size_t row = in / 4 * 9 + tap;
        EXPECT_EQ(blob[part.layout.weights + row * 64 + out * 4 + in % 4],
                  values.weights[(out * 9 + tap) * 8 + in]);
    }
    EXPECT_FALSE(in_blocks(part_of(model_of({4, 4, 3, 1, 16}))).value().has_value());
    EXPECT_FALSE(in_blocks(part_of(model_of({4, 64, 1, 1, 16}))).value().has_value());
}

TEST(StoredForm, WrongCountsAreRefused) {
    const auto part = part_of(model_of({2, 64, 3, 2, 128}));
    std::mt19937 random(7);
    Values values(part, random);
    std::vector<std::byte> blob(part.size_bytes);
    values.weights.pop_back();
    EXPECT_FALSE(encode_stored(part, values.given(), blob));
    Values fewer(part, random);
    fewer.biases.pop_back();
    EXPECT_FALSE(encode_stored(part, fewer.given(), blob));
}

TEST(FixedBytes, AreThoseThatNoNumberChanges) {
    std::mt19937 random(8);
    for (const Convolution& c :
         {Convolution{6, 3, 3, 1, 21}, {6, 8, 1, 1, 70}, {2, 7, 3, 2, 20}, {6, 8, 1, 1, 64}}) {
        const auto plain = model_of(c);
        const auto part = part_of(plain);
        const auto all = fixed_bytes(plain, part, part.size_bytes).value();
        std::vector<bool> changes(part.size_bytes);
        std::vector<std::byte> first(part.size_bytes), blob(part.size_bytes);
        ASSERT_TRUE(encode_stored(part, Values(part, random).given(), first));
        for (int trial = 0; trial < 16; ++trial) {
            ASSERT_TRUE(encode_stored(part, Values(part, random).given(), blob));
            for (std::size_t at = 0; at < blob.size(); ++at)
                changes[at] = changes[at] || blob[at] != first[at];
            for (const FixedByte& fixed : all) EXPECT_EQ(blob[fixed.offset], fixed.value);
        }
        EXPECT_EQ(all.size(), static_cast<std::size_t>(std::ranges::count(changes, false)));
        const auto some = fixed_bytes(plain, part, 5).value();
        EXPECT_THAT(some, SizeIs(std::min<std::size_t>(5, all.size())));
    }
    const auto full = model_of({6, 8, 1, 1, 64});
    EXPECT_THAT(fixed_bytes(full, part_of(full), 5).value(), IsEmpty());
}

}  // namespace
}  // namespace reef::edgetpu
