// Numeric comparison of two arrays: what `reef compare` prints per tensor.
#pragma once

#include <cstdint>
#include <optional>

#include "reef/base/npy.h"
#include "reef/base/result.h"

namespace reef {

/// How far two numbers may lie apart that do not count as different.
struct Tolerance {
    double absolute = 0;
    double relative = 0;  ///< times the second number's absolute value
    friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

/// Every pair of elements at the same place is one of three kinds:
///   - both NaN: equal;
///   - one NaN: different, whatever the tolerance, and counted in nan_only_one;
///   - two numbers: equal when their values are (0.0 equals -0.0, an infinity equals itself), and
///     different when |a - b| > absolute + relative |b|, where an infinite b counts as 0. An
///     infinity against anything else is at distance inf.
/// The averages are over the pairs of two numbers, so that a NaN poisons none of them.
///
/// Integers are compared exactly up to 64 bits, also signed against unsigned; only the reported
/// averages and the maximum are rounded to double. Floats are compared after exact conversion to
/// double. A complex element is a NaN when one of its parts is, and its distance is |a - b|. A bool
/// element is false when its byte is 0, true otherwise.
struct Comparison {
    std::int64_t elements = 0;
    std::int64_t equal = 0;
    std::int64_t different = 0;
    std::optional<std::int64_t> first_different;  ///< index into the C-ordered elements

    double max_abs_diff = 0;   ///< 0 without a pair of numbers; inf with an unequal infinity
    double mean_abs_diff = 0;  ///< likewise
    double mse = 0;            ///< mean of |a - b|^2; likewise

    /// sum(a b) / (|a| |b|) over the pairs of two finite numbers, complex parts taken as two
    /// numbers each: exactly 1 when those pairs are all equal, 1 for two zero vectors (also for no
    /// elements), 0 for a zero vector against another one.
    double cosine = 1;

    std::int64_t nan_a = 0;         ///< NaN elements of the first array
    std::int64_t nan_b = 0;         ///< NaN elements of the second
    std::int64_t nan_only_one = 0;  ///< places where exactly one is NaN

    /// Largest distance in representable float32 values, +0.0 and -0.0 being one value and the
    /// infinities next to the largest finite values; only when both arrays are float32.
    std::optional<std::int64_t> max_ulp;

    [[nodiscard]] bool same() const { return different == 0; }
    friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// Element types may differ within integers, within floats (bfloat16 included) and within complex
/// numbers; shapes must be equal. bad_argument otherwise, with both sides named, and for a
/// tolerance that is negative or NaN; unsupported for element types without a number (string, int4,
/// ...).
[[nodiscard]] Result<Comparison> compare(const Array& a, const Array& b,
                                         const Tolerance& tolerance = {});

}  // namespace reef
