// Division by a number that stays the same for many sums, as a product and a shift. Both forms are
// exact; tests/cpu/exact_quotient_test.cpp tries them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace reef::cpu {

/// The mean of at most 256 bytes from the sum of what each is above the smallest value of its type,
/// in 16 bits: rounded to nearest, halves away from zero, and above the smallest value, too.
struct ByteMean {
    static constexpr std::int32_t most = 256;

    std::uint16_t factor = 0;
    std::uint16_t bias = 0;
    /// Sums below it are those of negative means, whose halves round down. 0 where there are none.
    std::uint16_t negative_below = 0;
    std::uint16_t shift = 0;

    [[nodiscard]] std::uint8_t operator()(std::uint32_t sum) const {
        const std::uint32_t down = sum < negative_below ? 1 : 0;
        return static_cast<std::uint8_t>((sum + bias - down) * factor >> 16 >> shift);
    }
};

/// Precondition: count is 1 to ByteMean::most.
///
/// A dividend t below 256 n gives floor(t / n) as floor(t m / P), P = 2^(16 + shift), where m n is
/// above P by e and t e < P, and as floor((t + 1) m / P) where m n is below P by e and
/// (t + 1) e <= P. The product above and the one below P are n apart, so that one of them has an e
/// up to n / 2, and 128 n^2 <= P up to n = 256.
template <typename T>
[[nodiscard]] constexpr ByteMean byte_mean(std::int32_t count) {
    const auto n = static_cast<std::uint32_t>(count);
    ByteMean mean;
    mean.shift = static_cast<std::uint16_t>(n > 2 ? std::bit_width(n - 1) - 1 : 0);
    const std::uint32_t power = std::uint32_t{1} << (16 + mean.shift);
    const std::uint32_t below = (power - 1) / n;
    const bool takes_above = below < 0xFFFF && ((below + 1) * n - power) * 2 <= n;
    mean.factor = static_cast<std::uint16_t>(takes_above ? below + 1 : below);
    mean.bias = static_cast<std::uint16_t>(n / 2 + (takes_above ? 0 : 1));
    // Only an even number of bytes has halves.
    if (std::is_signed_v<T> && n % 2 == 0)
        mean.negative_below = static_cast<std::uint16_t>(128 * n);
    return mean;
}

/// floor(x / divisor) of numbers up to 2^31.
struct Quotient {
    std::uint32_t factor = 0;
    int shift = 0;

    [[nodiscard]] std::uint32_t operator()(std::uint32_t x) const {
        return static_cast<std::uint32_t>(std::uint64_t{x} * factor >> shift);
    }
};

/// Precondition: divisor > 0.
///
/// factor * divisor is above 2^shift by less than the divisor, which is at most 2^(shift - 31): the
/// product of x and what it is above stays below 2^shift.
[[nodiscard]] constexpr Quotient quotient_by(std::int32_t divisor) {
    const auto n = static_cast<std::uint32_t>(divisor);
    const int shift = 31 + static_cast<int>(std::bit_width(n - 1));
    return {static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + n - 1) / n), shift};
}

}  // namespace reef::cpu
