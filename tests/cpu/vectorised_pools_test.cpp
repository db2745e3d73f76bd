// Vectorised pools and means of every instruction set against the plain ones, on random shapes,
// parameters and data.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "cpu/plain_and_fast.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;

struct PoolShape {
    std::vector<std::int32_t> in;
    std::int32_t filter_h = 1, filter_w = 1;
    std::int32_t stride_h = 1, stride_w = 1;
};

/// Rows, columns, filters and channels of any kind.
PoolShape random_pool(std::mt19937& random, std::int32_t longest, std::int32_t channels) {
    PoolShape pool;
    pool.in = {pick(random, 1, 2), pick(random, 1, longest), pick(random, 1, longest),
               pick(random, 1, channels)};
    // Of all inside the image, and beyond both sides of it.
    const std::int32_t beyond = pick(random, 0, 4) == 0 ? 3 : 0;
    pool.filter_h = pick(random, 1, pool.in[1] + beyond);
    pool.filter_w = pick(random, 1, pool.in[2] + beyond);
    pool.stride_h = pick(random, 1, 4);
    pool.stride_w = pick(random, 1, 4);
    return pool;
}

void expect_pool_like_the_plain_one(Op op, ElementType type, const PoolShape& pool,
                                    std::mt19937& random) {
    const auto& in = pool.in;
    const bool fits = pool.filter_h <= in[1] && pool.filter_w <= in[2];
    const model::Pool2dOptions options{
        .padding = fits && pick(random, 0, 2) == 0 ? model::Padding::valid : model::Padding::same,
        .stride_h = pool.stride_h,
        .stride_w = pool.stride_w,
        .filter_h = pool.filter_h,
        .filter_w = pool.filter_w,
        .activation = pick(random, 0, 4) == 0 ? model::Activation::relu6 : model::Activation::none};
    const auto length = [&](std::int32_t input, std::int32_t filter, std::int32_t stride) {
        return options.padding == model::Padding::valid ? (input - filter) / stride + 1
                                                        : (input + stride - 1) / stride;
    };
    const auto quantization = model::per_tensor(0.04F, random_zero_point(random, type));
    Builder builder("pool");
    const auto input = builder.input("in", type, in, quantization);
    const auto output = builder.tensor("out", type,
                                       {in[0], length(in[1], options.filter_h, options.stride_h),
                                        length(in[2], options.filter_w, options.stride_w), in[3]},
                                       quantization);
    builder.add(op, {input}, {output}, options);
    builder.output(output);
    const auto model = builder.finish();
    ASSERT_TRUE(model) << model.error().message();
    SCOPED_TRACE(fmt::format("{}, {}x{} by {}x{}", model::shape_text(in), options.filter_h,
                             options.filter_w, options.stride_h, options.stride_w));
    ASSERT_NO_FATAL_FAILURE(expect_same_alone(*model, {bytes_of_any_kind(random, count_of(in))}));
}

void expect_pools_like_the_plain_ones(Op op, std::mt19937& random) {
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const PoolShape pool = round % 3 == 0 ? random_pool(random, 9, 700)
                                              : random_pool(random, 20, round % 3 == 1 ? 9 : 70);
        ASSERT_NO_FATAL_FAILURE(expect_pool_like_the_plain_one(op, type, pool, random));
    }
    // Rows of few channels that are taken in parts, and as many of them as two threads share.
    for (const ElementType type : byte_types)
        for (const std::int32_t channels : {1, 3, 8, 12, 16, 17})
            for (const auto& [width, filter, stride] : {std::tuple{128, 1, 1},
                                                        {129, 1, 1},
                                                        {300, 2, 2},
                                                        {301, 5, 1},
                                                        {800, 2, 3},
                                                        {1200, 7, 4}}) {
                const std::int32_t of_a_row = 2 * filter * (width / stride) * channels;
                const std::int32_t height = 3 * (131072 / of_a_row + 2);
                ASSERT_NO_FATAL_FAILURE(expect_pool_like_the_plain_one(
                    op, type, {{1, height, width, channels}, 2, filter, 1, stride}, random));
            }
    // Around the largest window whose sums have 16 bits, one window and overlapping ones.
    for (const auto& [h, w] : {std::pair{16, 16},
                               {1, 256},
                               {1, 257},
                               {256, 1},
                               {257, 1},
                               {15, 17},
                               {23, 24},
                               {2, 300},
                               {300, 2}})
        for (const ElementType type : byte_types)
            for (const std::int32_t channels : {1, 5, 8, 16, 67})
                for (const std::int32_t more : {0, 3})
                    ASSERT_NO_FATAL_FAILURE(expect_pool_like_the_plain_one(
                        op, type, {{1, h + more, w + more, channels}, h, w}, random));
}

TEST(Vectorised, AveragePoolEqualsThePlainOne) {
    std::mt19937 random(11);
    expect_pools_like_the_plain_ones(Op::average_pool_2d, random);
}

/// Fewer windows than a vector has, as many, and some more; the last ones with fewer rows.
TEST(Vectorised, MeansOfPairsOfPixelsEqualThePlainOnes) {
    std::mt19937 random(51);
    for (const ElementType type : byte_types)
        for (std::int32_t width = 2; width < 40; width += 1 + width / 9)
            for (const std::int32_t rows : {1, 2, 5})
                for (const std::int32_t stride : {1, 2, 5})
                    ASSERT_NO_FATAL_FAILURE(expect_pool_like_the_plain_one(
                        Op::average_pool_2d, type, {{1, 7, width, 8}, rows, 2, stride, 2}, random));
}

TEST(Vectorised, MaxPoolEqualsThePlainOne) {
    std::mt19937 random(21);
    expect_pools_like_the_plain_ones(Op::max_pool_2d, random);
}

/// Every sum of so many bytes, one in each channel.
std::vector<std::byte> every_sum(ElementType type, std::int32_t count) {
    std::vector<std::byte> bytes;
    for (std::int32_t pixel = 0; pixel < count; ++pixel)
        for (std::int32_t sum = 0; sum <= 255 * count; ++sum) {
            const std::int32_t above = pixel < sum % count ? sum / count + 1 : sum / count;
            bytes.push_back(static_cast<std::byte>(above - (type == ElementType::int8 ? 128 : 0)));
        }
    return bytes;
}

TEST(Vectorised, AveragePoolsOfEverySumEqualThePlainOnes) {
    for (const ElementType type : byte_types)
        for (const std::int32_t count : {1, 2, 3, 4, 5, 6, 7, 9, 12, 25, 49, 64, 121, 255, 256}) {
            const std::int32_t channels = 255 * count + 1;
            const auto quantization = model::per_tensor(1, 0);
            Builder builder("pool");
            const auto input = builder.input("in", type, {1, 1, count, channels}, quantization);
            const auto output = builder.tensor("out", type, {1, 1, 1, channels}, quantization);
            builder.add(Op::average_pool_2d, {input}, {output},
                        model::Pool2dOptions{.padding = model::Padding::valid,
                                             .stride_h = 1,
                                             .stride_w = 1,
                                             .filter_h = 1,
                                             .filter_w = count});
            builder.output(output);
            const auto model = builder.finish();
            ASSERT_TRUE(model) << model.error().message();
            SCOPED_TRACE(count);
            ASSERT_NO_FATAL_FAILURE(expect_same_alone(*model, {every_sum(type, count)}));
        }
}

/// Of scales of which many means are in the middle of two steps, beside it and anywhere.
TEST(Vectorised, MeansOfEverySumEqualThePlainOnes) {
    std::mt19937 random(41);
    for (int round = 0; round < 160; ++round) {
        const ElementType type = byte_types[round % 2];
        const std::int32_t count = std::array{
            1, 2, 3, 4, 6, 7, 16, 25, 48, 49, 64}[static_cast<std::size_t>(round / 2) % 11];
        const std::int32_t channels = 255 * count + 1;
        const float ratio = round % 3 == 0 ? 1.0F / static_cast<float>(pick(random, 1, 16))
                            : round % 3 == 1
                                ? static_cast<float>(pick(random, 1, 64)) / 32
                                : std::ldexp(1.0F + static_cast<float>(random() % 999) / 1000,
                                             pick(random, -12, 8));
        Builder builder("mean");
        const auto input = builder.input("in", type, {1, 1, count, channels},
                                         model::per_tensor(ratio, random_zero_point(random, type)));
        const auto axes =
            builder.constant<std::int32_t>("axes", ElementType::int32, {2}, std::array{1, 2});
        const auto output = builder.tensor("out", type, {1, 1, 1, channels},
                                           model::per_tensor(1, random_zero_point(random, type)));
        builder.add(Op::mean, {input, axes}, {output}, model::ReducerOptions{.keep_dims = true});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(fmt::format("{} bytes, scales {} to 1", count, ratio));
        ASSERT_NO_FATAL_FAILURE(expect_same_from(*model, {every_sum(type, count)}));
    }
}

struct MeanCase {
    std::vector<std::int32_t> in, axes, out;
};

/// Any axes, or height and width; few channels and many.
MeanCase random_mean(std::mt19937& random) {
    const bool special = pick(random, 0, 1) == 0;
    const bool from_behind = pick(random, 0, 2) == 0;
    const std::int32_t rank = special ? 4 : pick(random, 1, 4);
    const std::int32_t channels = std::array{7, 80, 700}[static_cast<std::size_t>(random() % 3)];
    MeanCase mean;
    for (std::int32_t i = 0; i < rank; ++i) {
        const std::int32_t longest = i + 1 == rank ? channels : i == 0 ? 3 : 24;
        mean.in.push_back(pick(random, 1, longest));
        const bool reduced = special ? i == 1 || i == 2 : pick(random, 0, 1) == 0;
        if (reduced) mean.axes.push_back(i - (from_behind ? rank : 0));
        mean.out.push_back(reduced ? 1 : mean.in.back());
    }
    return mean;
}

TEST(Vectorised, MeanEqualsThePlainOne) {
    std::mt19937 random(12);
    for (int round = 0; round < 2 * rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const auto [in, axes, out] = random_mean(random);
        Builder builder("mean");
        const auto from = model::per_tensor(0.03F, random_zero_point(random, type));
        const auto to = model::per_tensor(std::array{0.021F, 0.003F, 2.0F}[random() % 3],
                                          random_zero_point(random, type));
        const auto input = builder.input("in", type, in, from);
        const auto axis = builder.constant<std::int32_t>(
            "axes", ElementType::int32, {static_cast<std::int32_t>(axes.size())}, axes);
        const auto output = builder.tensor("out", type, out, round % 3 == 0 ? from : to);
        builder.add(Op::mean, {input, axis}, {output}, model::ReducerOptions{.keep_dims = true});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in) + " to " + model::shape_text(out));
        ASSERT_NO_FATAL_FAILURE(
            expect_same_alone(*model, {bytes_of_any_kind(random, count_of(in))}));
    }
}

}  // namespace
}  // namespace reef::test
