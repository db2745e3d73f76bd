#include "inputs/image_input.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "reef/model/builder.h"

namespace reef::tool {
namespace {

model::Tensor tensor_of(std::vector<std::int32_t> shape, ElementType type) {
    model::Tensor tensor;
    tensor.shape = std::move(shape);
    tensor.type = type;
    return tensor;
}

Image random_image(int width, int height) {
    std::mt19937 random(7);
    Image image{width, height,
                std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height * 3)};
    for (auto& value : image.rgb) value = static_cast<std::uint8_t>(random());
    return image;
}

/// The definition in doubles: between the nearest samples, outside the edge the edge itself.
double expected_at(std::span<const std::uint8_t> pixels, PictureSize from, PictureSize to, int y,
                   int x, int c) {
    const auto place = [](int i, int size, int wanted) { return (i + 0.5) * size / wanted - 0.5; };
    const auto pixel = [&](int row, int column) {
        row = std::clamp(row, 0, from.height - 1);
        column = std::clamp(column, 0, from.width - 1);
        return static_cast<double>(
            pixels[(static_cast<std::size_t>(row) * from.width + column) * from.channels + c]);
    };
    const double at_y = place(y, from.height, to.height);
    const double at_x = place(x, from.width, to.width);
    const int row = static_cast<int>(std::floor(at_y));
    const int column = static_cast<int>(std::floor(at_x));
    const double fy = at_y - row;
    const double fx = at_x - column;
    return (pixel(row, column) * (1 - fx) + pixel(row, column + 1) * fx) * (1 - fy) +
           (pixel(row + 1, column) * (1 - fx) + pixel(row + 1, column + 1) * fx) * fy;
}

TEST(ResizeBilinear, EqualSizesChangeNothing) {
    const Image image = random_image(13, 9);
    const PictureSize size{9, 13, 3};
    EXPECT_EQ(resize_bilinear(image.rgb, size, size), image.rgb);
}

TEST(ResizeBilinear, FollowsItsDefinition) {
    const PictureSize sizes[] = {{1, 1, 3}, {2, 2, 3}, {5, 3, 3}, {9, 13, 3}, {40, 31, 3}};
    const Image image = random_image(13, 9);
    const PictureSize from{9, 13, 3};
    for (const PictureSize to : sizes) {
        const auto resized = resize_bilinear(image.rgb, from, to);
        ASSERT_EQ(resized.size(), static_cast<std::size_t>(to.height) * to.width * 3);
        std::size_t i = 0;
        for (int y = 0; y < to.height; ++y) {
            for (int x = 0; x < to.width; ++x) {
                for (int c = 0; c < 3; ++c, ++i) {
                    const double expected = expected_at(image.rgb, from, to, y, x, c);
                    // Truncated, not rounded; float32 may fall just below a whole number.
                    EXPECT_LE(resized[i], expected + 1e-3);
                    EXPECT_GT(resized[i], expected - 1.001);
                }
            }
        }
    }
}

TEST(ResizeBilinear, TruncatesTheMiddleOfTwoPixels) {
    const std::vector<std::uint8_t> pixels = {10, 21};
    EXPECT_EQ(resize_bilinear(pixels, {1, 2, 1}, {1, 1, 1}), std::vector<std::uint8_t>{15});
    EXPECT_EQ(resize_bilinear(pixels, {1, 2, 1}, {1, 4, 1}),
              (std::vector<std::uint8_t>{10, 12, 18, 21}));
}

TEST(PrepareImage, GreyIsTheIntegerMean) {
    const Image image{2, 1, {1, 2, 4, 255, 255, 254}};
    const auto bytes = prepare_image(image, tensor_of({1, 1, 2, 1}, ElementType::uint8));
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, (std::vector<std::byte>{std::byte{2}, std::byte{254}}));
    EXPECT_EQ(*bytes, *prepare_image(image, tensor_of({1, 1, 2}, ElementType::uint8)));
}

TEST(PrepareImage, ElementTypesHaveTheirOwnOffsets) {
    const Image image{1, 1, {0, 128, 255}};
    const auto signed_bytes = prepare_image(image, tensor_of({1, 1, 1, 3}, ElementType::int8));
    ASSERT_TRUE(signed_bytes);
    const std::int8_t expected[] = {-128, 0, 127};
    EXPECT_EQ(std::memcmp(signed_bytes->data(), expected, 3), 0);

    const auto floats = prepare_image(image, tensor_of({1, 1, 1, 3}, ElementType::float32));
    ASSERT_TRUE(floats);
    float values[3];
    ASSERT_EQ(floats->size(), sizeof values);
    std::memcpy(values, floats->data(), sizeof values);
    EXPECT_EQ(values[0], -1.0F);
    EXPECT_EQ(values[1], (128 - 127.5F) / 127.5F);
    EXPECT_EQ(values[2], 1.0F);
}

std::vector<int> prepared(const Image& image, const model::Tensor& tensor,
                          const PictureRules& rules) {
    const auto bytes = prepare_image(image, tensor, rules);
    EXPECT_TRUE(bytes) << bytes.error().message();
    std::vector<int> values;
    for (const std::byte byte : bytes.value_or(std::vector<std::byte>()))
        values.push_back(std::to_integer<int>(byte));
    return values;
}

TEST(PrepareImage, TheMiddleMayBeCutOut) {
    // Four columns and two rows: 0 10 20 30 above 40 50 60 70.
    Image image{4, 2, {}};
    for (int i = 0; i < 8; ++i)
        image.rgb.insert(image.rgb.end(), 3, static_cast<std::uint8_t>(10 * i));
    const auto square = tensor_of({1, 2, 2, 1}, ElementType::uint8);
    EXPECT_EQ(prepared(image, square, {.crop = true}), (std::vector<int>{10, 20, 50, 60}));
    EXPECT_EQ(prepared(image, square, {.resize = 2}), (std::vector<int>{10, 20, 50, 60}));
    EXPECT_EQ(prepared(image, tensor_of({1, 1, 2, 1}, ElementType::uint8), {.crop = true}),
              prepared(image, tensor_of({1, 1, 2, 1}, ElementType::uint8), {}));
    EXPECT_FALSE(prepare_image(image, square, {.resize = 1}));
}

// Of 4194305 pixels in a row 1024 a pixel are 2^32 + 1024.
TEST(PrepareImage, NoPictureIsScaledToMoreThanIsRead) {
    const Image strip{(1 << 22) + 1, 1, std::vector<std::uint8_t>(3 * ((1 << 22) + 1))};
    const auto tensor = tensor_of({1, 2, 2, 1}, ElementType::uint8);
    const auto bytes = prepare_image(strip, tensor, {.resize = 1024});
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().cause, Cause::unsupported);
}

TEST(PrepareImage, ValuesMayHaveAMeanAndADeviation) {
    const Image image{1, 1, {10, 20, 30}};
    auto tensor = tensor_of({1, 1, 1, 3}, ElementType::uint8);
    EXPECT_EQ(prepared(image, tensor, {.bgr = true}), (std::vector<int>{30, 20, 10}));
    const PictureRules rules{.bgr = true, .mean = {10, 0, 5}, .deviation = {2}};
    // No scale: nothing says which byte 10 is.
    EXPECT_FALSE(prepare_image(image, tensor, rules));
    tensor.quantization = model::per_tensor(0.5F, 100);
    // Blue (30 - 10) / 2 = 10 is 20 steps; green 20 / 2 is as much; red (10 - 5) / 2 is 5 steps.
    EXPECT_EQ(prepared(image, tensor, rules), (std::vector<int>{120, 120, 105}));
    EXPECT_EQ(prepared(image, tensor, {.mean = {1000}}), (std::vector<int>{0, 0, 0}));
    const auto floats =
        prepare_image(image, tensor_of({1, 1, 1, 3}, ElementType::float32), {.deviation = {20}});
    ASSERT_TRUE(floats);
    float values[3];
    ASSERT_EQ(floats->size(), sizeof values);
    std::memcpy(values, floats->data(), sizeof values);
    EXPECT_EQ(values[0], 0.5F);
    EXPECT_EQ(values[2], 1.5F);
    EXPECT_FALSE(prepare_image(image, tensor, {.mean = {1, 2}}));
    EXPECT_FALSE(prepare_image(image, tensor, {.deviation = {0}}));
    for (const double none : {std::nan(""), HUGE_VAL}) {
        EXPECT_FALSE(prepare_image(image, tensor, {.mean = {none}}));
        EXPECT_FALSE(prepare_image(image, tensor, {.deviation = {1, none, 1}}));
    }
    for (const float scale : {0.0F, -1.0F, std::nanf("")}) {
        tensor.quantization = model::per_tensor(scale, 0);
        EXPECT_FALSE(prepare_image(image, tensor, rules));
    }
    EXPECT_FALSE(prepare_image(image, tensor_of({1, 1, 1, 1}, ElementType::uint8), {.bgr = true}));
}

TEST(PrepareImage, OtherTensorsAreRefused) {
    const Image image{1, 1, {0, 0, 0}};
    const std::vector<model::Tensor> tensors = {
        tensor_of({1, 4, 4, 2}, ElementType::uint8), tensor_of({2, 4, 4, 3}, ElementType::uint8),
        tensor_of({1, 10}, ElementType::uint8),      tensor_of({1, 4, 4, 3}, ElementType::int16),
        tensor_of({1, 0, 4, 3}, ElementType::uint8), tensor_of({}, ElementType::float32)};
    for (const auto& tensor : tensors) EXPECT_FALSE(prepare_image(image, tensor));
}

}  // namespace
}  // namespace reef::tool
