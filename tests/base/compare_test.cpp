#include "reef/base/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace reef {
namespace {

using testing::HasSubstr;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
Array array_of(ElementType type, const std::vector<T>& values) {
    Array array{type, {static_cast<std::int64_t>(values.size())}, {}};
    array.data.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
}

Array floats(const std::vector<float>& values) {
    return array_of(ElementType::float32, values);
}
Array doubles(const std::vector<double>& values) {
    return array_of(ElementType::float64, values);
}
Array bytes(const std::vector<std::uint8_t>& values) {
    return array_of(ElementType::uint8, values);
}

Comparison compared(const Array& a, const Array& b, double tolerance = 0) {
    const auto result = compare(a, b, {.absolute = tolerance, .relative = 0});
    EXPECT_TRUE(result) << result.error().message();
    return result.value_or(Comparison{});
}

TEST(Compare, ARelativeToleranceGrowsWithTheSecondNumber) {
    const auto different = [](const Array& a, const Array& b, const Tolerance& tolerance) {
        const auto result = compare(a, b, tolerance);
        EXPECT_TRUE(result) << result.error().message();
        return result ? result->different : -1;
    };
    const auto infinity = static_cast<float>(inf);
    EXPECT_EQ(different(floats({90, 110}), floats({100, 100}), {.relative = 0.1}), 0);
    EXPECT_EQ(different(floats({89, 111}), floats({100, 100}), {.relative = 0.1}), 2);
    EXPECT_EQ(different(floats({89}), floats({100}), {.absolute = 1, .relative = 0.1}), 0);
    EXPECT_EQ(different(floats({1, infinity}), floats({infinity, infinity}), {.relative = 0.5}), 1);
    const Array small{ElementType::int8, {2}, {std::byte{9}, std::byte{0xf6}}};
    const Array large{ElementType::int8, {2}, {std::byte{10}, std::byte{0xf4}}};
    // 9 and -10 against 10 and -12: 1 of 10 and 2 of 12.
    EXPECT_EQ(different(small, large, {.relative = 0.1}), 1);
    EXPECT_EQ(compare(small, large, {.relative = -1}).error().cause, Cause::bad_argument);
}

TEST(Compare, CountsAndAverages) {
    const Comparison c = compared(bytes({1, 2, 3, 250}), bytes({1, 4, 3, 249}));
    EXPECT_EQ(c.elements, 4);
    EXPECT_EQ(c.equal, 2);
    EXPECT_EQ(c.different, 2);
    EXPECT_EQ(c.first_different, 1);
    EXPECT_EQ(c.max_abs_diff, 2);
    EXPECT_EQ(c.mean_abs_diff, 0.75);
    EXPECT_EQ(c.mse, 1.25);
    EXPECT_NEAR(c.cosine, (1 + 8 + 9 + 250 * 249) / std::sqrt((14 + 62500.0) * (26 + 62001.0)),
                1e-15);
    EXPECT_FALSE(c.max_ulp);
    EXPECT_FALSE(c.same());
}

TEST(Compare, ToleranceDecidesWhatIsDifferent) {
    const Array a = bytes({10, 20, 30});
    const Array b = bytes({11, 23, 30});
    EXPECT_EQ(compared(a, b, 1).first_different, 1);
    EXPECT_EQ(compared(a, b, 2.999).different, 1);
    EXPECT_EQ(compared(a, b, 3).different, 0);
    EXPECT_EQ(compared(a, b, 3).equal, 1);
    EXPECT_TRUE(compared(a, b, inf).same());
    EXPECT_EQ(compared(floats({1.0f}), floats({1.5f}), 0.5).different, 0);
    EXPECT_EQ(compared(floats({1.0f}), floats({1.5f}), 0.49).different, 1);
}

TEST(Compare, Wide64BitIntegersAreExact) {
    const std::int64_t large = (std::int64_t{1} << 62) + 1;
    const Array a = array_of<std::int64_t>(ElementType::int64, {large, -large});
    const Array b = array_of<std::int64_t>(ElementType::int64, {large - 1, -large});
    const Comparison c = compared(a, b);
    EXPECT_EQ(c.equal, 1);
    EXPECT_EQ(c.first_different, 0);
    EXPECT_EQ(c.max_abs_diff, 1);

    using Limits = std::numeric_limits<std::int64_t>;
    const Comparison signs =
        compared(array_of<std::int64_t>(ElementType::int64, {-1, Limits::min()}),
                 array_of<std::uint64_t>(ElementType::uint64, {~std::uint64_t{0}, 0}));
    EXPECT_EQ(signs.equal, 0);
    EXPECT_EQ(signs.max_abs_diff, 0x1p64);
    const Array extremes = array_of<std::int64_t>(ElementType::int64, {Limits::max()});
    const Array opposite = array_of<std::int64_t>(ElementType::int64, {Limits::min()});
    EXPECT_EQ(compared(extremes, opposite, 0x1p64).different, 0);
    // 2^64 - 1 apart: the nearest double below 2^64 is less than that.
    EXPECT_EQ(compared(extremes, opposite, std::nextafter(0x1p64, 0)).different, 1);
}

TEST(Compare, MixedWidthsOfOneKind) {
    EXPECT_EQ(compared(bytes({0, 255}), array_of<std::int32_t>(ElementType::int32, {0, 255})).equal,
              2);
    EXPECT_EQ(compared(bytes({255}), array_of<std::int8_t>(ElementType::int8, {-1})).max_abs_diff,
              256);
    const Array half = array_of<std::uint16_t>(
        ElementType::float16,
        {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x7c00, 0xfc00, 0x7e00, 0x8000});
    const Array same =
        doubles({1, -2, 65504, std::ldexp(1, -24), std::ldexp(1, -14), inf, -inf, nan, 0});
    EXPECT_EQ(compared(half, same).equal, 9);
    const Array brain = array_of<std::uint16_t>(ElementType::bfloat16, {0x3f80, 0xc000, 0x7f80});
    EXPECT_EQ(compared(brain, floats({1, -2, static_cast<float>(inf)})).equal, 3);
}

TEST(Compare, NansNeverPoison) {
    const auto fnan = static_cast<float>(nan);
    const Comparison c =
        compared(floats({fnan, fnan, 1, 2, 4}), floats({fnan, 1, fnan, 2, 5}), 100);
    EXPECT_EQ(c.nan_a, 2);
    EXPECT_EQ(c.nan_b, 2);
    EXPECT_EQ(c.nan_only_one, 2);
    EXPECT_EQ(c.equal, 2);
    EXPECT_EQ(c.different, 2);
    EXPECT_EQ(c.first_different, 1);
    EXPECT_EQ(c.max_abs_diff, 1);
    EXPECT_EQ(c.mean_abs_diff, 0.5);
    EXPECT_EQ(c.mse, 0.5);
    EXPECT_NEAR(c.cosine, 24 / std::sqrt(20.0 * 29.0), 1e-15);
    EXPECT_EQ(c.max_ulp, 1 << 21);
    const Comparison only = compared(floats({fnan}), floats({fnan}));
    EXPECT_TRUE(only.same());
    EXPECT_EQ(only.mean_abs_diff, 0);
    EXPECT_EQ(only.cosine, 1);
}

TEST(Compare, Infinities) {
    const Comparison same = compared(doubles({inf, -inf, 3}), doubles({inf, -inf, 3}));
    EXPECT_EQ(same.equal, 3);
    EXPECT_EQ(same.max_abs_diff, 0);
    EXPECT_EQ(same.mean_abs_diff, 0);
    EXPECT_EQ(same.cosine, 1);
    const Comparison c = compared(doubles({inf, 3, 4}), doubles({-inf, 3, 4}), 1e308);
    EXPECT_EQ(c.different, 1);
    EXPECT_EQ(c.max_abs_diff, inf);
    EXPECT_EQ(c.mean_abs_diff, inf);
    EXPECT_EQ(c.cosine, 1);
    EXPECT_TRUE(compared(doubles({inf}), doubles({1}), inf).same());
}

TEST(Compare, CosineOfExtremes) {
    EXPECT_EQ(compared(bytes({0, 0}), bytes({0, 0})).cosine, 1);
    EXPECT_EQ(compared(bytes({0, 0}), bytes({0, 1})).cosine, 0);
    EXPECT_EQ(compared(bytes({}), bytes({})).cosine, 1);
    EXPECT_NEAR(compared(doubles({3e300, 4e300}), doubles({3e-310, 4e-310})).cosine, 1, 1e-9);
    EXPECT_NEAR(compared(doubles({1e300, 0}), doubles({1e300, 1e300})).cosine, std::sqrt(0.5),
                1e-12);
    EXPECT_DOUBLE_EQ(compared(doubles({1, 2}), doubles({-1, -2})).cosine, -1);
    EXPECT_EQ(compared(doubles({5e-324, 0}), doubles({0, 5e-324})).cosine, 0);
}

TEST(Compare, UlpDistanceOfFloats) {
    const float one = 1.0f;
    const float next = std::nextafter(one, 2.0f);
    EXPECT_EQ(compared(floats({one}), floats({next})).max_ulp, 1);
    EXPECT_EQ(compared(floats({0.0f}), floats({-0.0f})).max_ulp, 0);
    EXPECT_EQ(compared(floats({0.0f}), floats({-0.0f})).equal, 1);
    const float tiny = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(compared(floats({tiny}), floats({-tiny})).max_ulp, 2);
    EXPECT_EQ(
        compared(floats({std::numeric_limits<float>::max()}), floats({static_cast<float>(inf)}))
            .max_ulp,
        1);
    EXPECT_FALSE(compared(floats({1}), doubles({1})).max_ulp);
}

TEST(Compare, BooleansAndComplexNumbers) {
    const Array a = array_of<std::uint8_t>(ElementType::boolean, {0, 1, 2});
    const Array b = array_of<std::uint8_t>(ElementType::boolean, {0, 7, 0});
    const Comparison booleans = compared(a, b);
    EXPECT_EQ(booleans.equal, 2);
    EXPECT_EQ(booleans.max_abs_diff, 1);

    Array c = doubles({3, 4, nan, 0, inf, 1});
    Array d = doubles({0, 0, 1, nan, inf, 1});
    c.type = d.type = ElementType::complex128;
    c.shape = d.shape = {3};
    const Comparison complex = compared(c, d);
    EXPECT_EQ(complex.max_abs_diff, 5);
    EXPECT_EQ(complex.nan_a, 1);
    EXPECT_EQ(complex.nan_b, 1);
    EXPECT_EQ(complex.nan_only_one, 0);
    EXPECT_EQ(complex.equal, 2);
    EXPECT_EQ(complex.different, 1);
}

TEST(Compare, BlocksJoinWithoutSeams) {
    std::mt19937 random(4);
    std::vector<std::int16_t> a(5000);
    std::vector<std::int32_t> b(a.size());
    std::int64_t equal = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<std::int16_t>(random());
        b[i] = a[i] + static_cast<int>(random() % 3) - 1;
        equal += a[i] == b[i];
        sum += std::abs(a[i] - b[i]);
    }
    const Comparison c = compared(array_of(ElementType::int16, a), array_of(ElementType::int32, b));
    EXPECT_EQ(c.equal, equal);
    EXPECT_EQ(c.mean_abs_diff, static_cast<double>(sum) / 5000);
    b.assign(a.begin(), a.end());
    b[4321] += 9;
    EXPECT_EQ(
        compared(array_of(ElementType::int16, a), array_of(ElementType::int32, b)).first_different,
        4321);
}

TEST(Compare, RefusesWhatCannotBeCompared) {
    const auto error = [](const Array& a, const Array& b, double tolerance = 0) {
        return compare(a, b, {.absolute = tolerance, .relative = 0}).error();
    };
    EXPECT_EQ(error(bytes({1}), floats({1})).message(),
              "the element types differ: uint8 and float32 (convert one of them first)");
    EXPECT_EQ(error(bytes({1}), array_of<std::uint8_t>(ElementType::boolean, {1})).cause,
              Cause::bad_argument);
    Array row = bytes({1, 2});
    Array column = row;
    column.shape = {2, 1};
    EXPECT_EQ(error(row, column).message(), "the shapes differ: [2] and [2, 1]");
    EXPECT_THAT(error(row, row, -1).message(), HasSubstr("a tolerance of -1"));
    EXPECT_EQ(error(row, row, nan).cause, Cause::bad_argument);
    row.data.pop_back();
    EXPECT_EQ(error(bytes({1, 2}), row).message(),
              "the second array has shape [2] and 1 bytes of uint8");
    const Array huge{ElementType::uint8, {std::int64_t{1} << 62, 8}, {}};
    EXPECT_EQ(error(huge, huge).cause, Cause::bad_argument);
    Array text{ElementType::string, {0}, {}};
    EXPECT_EQ(error(text, text).cause, Cause::unsupported);
}

}  // namespace
}  // namespace reef
