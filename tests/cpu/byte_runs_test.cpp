// Operators that move rows of bytes, with rows of every length that is copied in another way.
#include <gmock/gmock.h>

#include <cmath>

#include "cpu/one_operator.h"

namespace reef::test {
namespace {

using model::Op;
using model::per_tensor;
using Row = std::vector<std::uint8_t>;

struct Rows {
    std::int32_t count = 0, length = 0;
    Row bytes;

    [[nodiscard]] Row part(std::int32_t begin, std::int32_t end) const {
        Row result;
        for (std::int32_t row = 0; row < count; ++row)
            result.insert(result.end(), bytes.begin() + row * length + begin,
                          bytes.begin() + row * length + end);
        return result;
    }
    [[nodiscard]] Shape shape() const { return {count, length}; }
};

Rows random_rows(std::mt19937& random, std::int32_t count, std::int32_t length) {
    Rows rows{count, length, Row(static_cast<std::size_t>(count * length))};
    for (std::uint8_t& byte : rows.bytes) byte = static_cast<std::uint8_t>(random());
    return rows;
}

/// Of one piece, two and several, of none of the pieces' lengths, and longer than all of them.
std::vector<std::int32_t> lengths() {
    std::vector<std::int32_t> result{127, 128, 129, 200, 255, 256, 257, 300, 5000};
    for (std::int32_t length = 1; length < 70; ++length) result.push_back(length);
    return result;
}

/// More rows than are moved at once, and too few for that.
std::int32_t row_count(std::mt19937& random, std::int32_t length) {
    return pick(random, 0, 2) == 0 ? 3 : 20000 / length + pick(random, 1, 9);
}

const auto of_units = per_tensor(1, 0);

TEST(ByteRuns, AreTakenApart) {
    std::mt19937 random(31);
    for (const std::int32_t length : lengths()) {
        const std::int32_t other = pick(random, 1, 40);
        const Rows all = random_rows(random, row_count(random, length), length + other);
        const auto parts = OneOperator()
                               .input(ElementType::uint8, all.shape(), all.bytes, of_units)
                               .numbers({length, other})
                               .constant<std::int32_t>(ElementType::int32, {}, {1})
                               .output(ElementType::uint8, {all.count, length}, of_units)
                               .output(ElementType::uint8, {all.count, other}, of_units)
                               .run_all(Op::split_v, model::SplitVOptions{2});
        ASSERT_EQ(parts.size(), 2U);
        ASSERT_EQ(values_of<std::uint8_t>(parts[0]), all.part(0, length)) << length;
        ASSERT_EQ(values_of<std::uint8_t>(parts[1]), all.part(length, length + other)) << length;
        ASSERT_EQ(OneOperator()
                      .input(ElementType::uint8, all.shape(), all.bytes, of_units)
                      .numbers({0, other})
                      .numbers({-1, length})
                      .output(ElementType::uint8, {all.count, length}, of_units)
                      .run<std::uint8_t>(Op::slice),
                  all.part(other, other + length))
            << length;
    }
}

TEST(ByteRuns, OfOneByteAreTakenInSteps) {
    std::mt19937 random(35);
    for (std::int32_t length = 1; length < 300; length += pick(random, 1, 7)) {
        const std::int32_t step = pick(random, -4, -1) + pick(random, 0, 1) * 5;
        const Rows all = random_rows(random, row_count(random, length), length);
        const std::int32_t taken = (length + std::abs(step) - 1) / std::abs(step);
        Row expected;
        for (std::int32_t row = 0; row < all.count; ++row)
            for (std::int32_t i = 0; i < taken; ++i)
                expected.push_back(all.bytes[static_cast<std::size_t>(
                    row * length + (step > 0 ? 0 : length - 1) + i * step)]);
        ASSERT_EQ(
            OneOperator()
                .input(ElementType::uint8, all.shape(), all.bytes, of_units)
                .numbers({0, 0})
                .numbers({0, 0})
                .numbers({1, step})
                .output(ElementType::uint8, {all.count, taken}, of_units)
                .run<std::uint8_t>(Op::strided_slice,
                                   model::StridedSliceOptions{.begin_mask = 3, .end_mask = 3}),
            expected)
            << length << " in steps of " << step;
    }
}

TEST(ByteRuns, AreJoined) {
    std::mt19937 random(32);
    for (const std::int32_t length : lengths()) {
        const std::int32_t other = pick(random, 1, 40);
        const Rows all = random_rows(random, row_count(random, length), length + other);
        ASSERT_EQ(OneOperator()
                      .input(ElementType::uint8, {all.count, length}, all.part(0, length), of_units)
                      .input(ElementType::uint8, {all.count, other},
                             all.part(length, length + other), of_units)
                      .output(ElementType::uint8, all.shape(), of_units)
                      .run<std::uint8_t>(Op::concatenation, model::ConcatenationOptions{.axis = 1}),
                  all.bytes)
            << length;
    }
}

TEST(ByteRuns, OfAnotherScaleAreJoined) {
    std::mt19937 random(33);
    for (const std::int32_t length : lengths()) {
        const Rows one = random_rows(random, row_count(random, length), length);
        const Rows two = random_rows(random, one.count, pick(random, 1, 40));
        Row expected;
        for (std::int32_t row = 0; row < one.count; ++row) {
            for (std::int32_t i = 0; i < length; ++i)
                expected.push_back(static_cast<std::uint8_t>(
                    10 +
                    std::round(0.5 * (one.bytes[static_cast<std::size_t>(row * length + i)]))));
            expected.insert(expected.end(), two.bytes.begin() + row * two.length,
                            two.bytes.begin() + (row + 1) * two.length);
        }
        ASSERT_EQ(
            OneOperator()
                .input(ElementType::uint8, one.shape(), one.bytes, per_tensor(1, 0))
                .input(ElementType::uint8, two.shape(), two.bytes, per_tensor(2, 10))
                .output(ElementType::uint8, {one.count, length + two.length}, per_tensor(2, 10))
                .run<std::uint8_t>(Op::concatenation, model::ConcatenationOptions{.axis = 1}),
            expected)
            << length;
    }
}

TEST(ByteRuns, AreSurrounded) {
    constexpr std::uint8_t zero = 7;
    std::mt19937 random(34);
    for (const std::int32_t length : lengths()) {
        const Rows rows = random_rows(random, row_count(random, length), length);
        const std::int32_t left = pick(random, 0, 3), right = pick(random, 0, 40);
        const std::int32_t above = pick(random, 0, 2), below = pick(random, 0, 2);
        const std::int32_t width = left + length + right;
        Row expected(static_cast<std::size_t>(above * width), zero);
        for (std::int32_t row = 0; row < rows.count; ++row) {
            expected.insert(expected.end(), static_cast<std::size_t>(left), zero);
            expected.insert(expected.end(), rows.bytes.begin() + row * length,
                            rows.bytes.begin() + (row + 1) * length);
            expected.insert(expected.end(), static_cast<std::size_t>(right), zero);
        }
        expected.insert(expected.end(), static_cast<std::size_t>(below * width), zero);
        // Axes of one index around the rows, which are shared out to threads.
        ASSERT_EQ(OneOperator()
                      .input(ElementType::uint8, {1, rows.count, 1, length}, rows.bytes,
                             per_tensor(1, zero))
                      .constant<std::int32_t>(ElementType::int32, {4, 2},
                                              {0, 0, above, below, 0, 0, left, right})
                      .output(ElementType::uint8, {1, above + rows.count + below, 1, width},
                              per_tensor(1, zero))
                      .run<std::uint8_t>(Op::pad),
                  expected)
            << length;
    }
}

}  // namespace
}  // namespace reef::test
