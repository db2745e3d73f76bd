// Products and shifts in place of divisions: every sum of every number of bytes, and what lies
// beside the multiples of larger divisors.
#include "cpu/prepare/exact_quotient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace reef::test {
namespace {

/// TFLite's, of the values themselves.
std::int32_t divided(std::int32_t sum, std::int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

template <typename T>
void expect_every_mean() {
    constexpr std::int32_t least = std::is_signed_v<T> ? -128 : 0;
    for (std::int32_t count = 1; count <= cpu::ByteMean::most; ++count) {
        const cpu::ByteMean mean = cpu::byte_mean<T>(count);
        for (std::int32_t above = 0; above <= 255 * count; ++above) {
            const std::int32_t expected = divided(above + least * count, count) - least;
            ASSERT_EQ(std::int32_t{mean(static_cast<std::uint32_t>(above))}, expected)
                << above << " of " << count;
            // In 16 bits, as in a vector.
            ASSERT_LE(above + mean.bias, 0xFFFF) << count;
        }
    }
}

TEST(ByteMean, OfEverySumIsTheRoundedQuotient) {
    expect_every_mean<std::uint8_t>();
    expect_every_mean<std::int8_t>();
}

void expect_quotients_by(std::int32_t divisor, std::mt19937& random) {
    const cpu::Quotient quotient = cpu::quotient_by(divisor);
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    const auto n = static_cast<std::uint64_t>(divisor);
    const auto expect = [&](std::uint64_t x) {
        const auto dividend = static_cast<std::uint32_t>(std::min(x, most));
        ASSERT_EQ(quotient(dividend), dividend / n) << dividend << " by " << divisor;
    };
    for (const std::uint64_t x : {std::uint64_t{0}, most, most - 1, most / n * n, most / n * n - 1})
        expect(x);
    for (int i = 0; i < 50; ++i) {
        const std::uint64_t multiple = random() % (most / n + 1) * n;
        expect(multiple);
        if (multiple > 0) expect(multiple - 1);
        expect(multiple + n - 1);
    }
}

TEST(Quotient, BesideMultiplesIsExact) {
    std::mt19937 random(3);
    for (std::int32_t divisor = 1; divisor <= 1 << 16; ++divisor)
        ASSERT_NO_FATAL_FAILURE(expect_quotients_by(divisor, random));
    for (int i = 0; i < 50000; ++i)
        ASSERT_NO_FATAL_FAILURE(expect_quotients_by(
            static_cast<std::int32_t>(random() % ((std::uint32_t{1} << 31) - 1)) + 1, random));
    expect_quotients_by(INT32_MAX, random);
}

}  // namespace
}  // namespace reef::test
