#include "cpu/prepare/broadcast.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace reef::cpu {
namespace {

using Shape = std::vector<std::int32_t>;

std::size_t size(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>{});
}

/// Index into `shape` of the element that broadcasting pairs with output element `index`.
std::size_t source(const Shape& output, const Shape& shape, std::size_t index) {
    std::size_t result = 0;
    std::size_t stride = 1;
    for (std::size_t from_end = 1; from_end <= output.size(); ++from_end) {
        const auto length = static_cast<std::size_t>(output[output.size() - from_end]);
        const std::size_t at = index % length;
        index /= length;
        if (from_end > shape.size()) continue;
        const auto own = static_cast<std::size_t>(shape[shape.size() - from_end]);
        if (own != 1) result += at * stride;
        stride *= own;
    }
    return result;
}

TEST(Broadcast, PairsTheElementsThatTheDefinitionPairs) {
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
        Shape full(1 + random() % 5);
        for (auto& length : full) length = 1 + static_cast<std::int32_t>(random() % 4);
        const auto variant = [&] {
            Shape shape = full;
            for (auto& length : shape)
                if (random() % 3 == 0) length = 1;
            shape.erase(shape.begin(),
                        shape.begin() + static_cast<std::ptrdiff_t>(random() % shape.size()));
            return shape;
        };
        const Shape a = variant();
        const Shape b = variant();
        const auto broadcast = Broadcast::of(a, b);
        ASSERT_TRUE(broadcast);
        const Shape& output = broadcast->output_shape();
        ASSERT_EQ(broadcast->size(), size(output));
        std::vector<int> seen(size(output));
        const std::size_t middle = random() % (size(output) + 1);
        const auto check = [&](std::size_t o, std::size_t i, std::size_t j, std::size_t count) {
            for (std::size_t k = 0; k < count; ++k) {
                ++seen[o + k];
                ASSERT_EQ(i + k * broadcast->a_step(), source(output, a, o + k));
                ASSERT_EQ(j + k * broadcast->b_step(), source(output, b, o + k));
            }
        };
        broadcast->each_run(0, middle, check);
        broadcast->each_run(middle, broadcast->size(), check);
        for (const int times : seen) ASSERT_EQ(times, 1);
    }
}

TEST(Broadcast, EqualShapesAreOneRun) {
    const auto broadcast = Broadcast::of({2, 3, 4}, {2, 3, 4}).value();
    int runs = 0;
    broadcast.each_run(0, 24, [&](std::size_t, std::size_t, std::size_t, std::size_t count) {
        EXPECT_EQ(count, 24U);
        ++runs;
    });
    EXPECT_EQ(runs, 1);
}

TEST(Broadcast, EmptyAndScalarAndMismatch) {
    EXPECT_EQ(Broadcast::of({}, {})->size(), 1U);
    EXPECT_EQ(Broadcast::of({0, 3}, {1, 3})->size(), 0U);
    const auto mismatch = Broadcast::of({2, 3}, {3, 2});
    ASSERT_FALSE(mismatch);
    EXPECT_EQ(mismatch.error().what, "shapes 2x3 and 3x2 do not broadcast");
}

}  // namespace
}  // namespace reef::cpu
