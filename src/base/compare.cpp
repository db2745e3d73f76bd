#include "reef/base/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/npy_header.h"

namespace reef {
namespace {

// Holds every int64 and uint64 and their differences.
__extension__ typedef __int128 Integer;
using Complex = std::complex<double>;

enum class Kind : std::uint8_t { none, boolean, integer, real, complex };

Kind kind_of(ElementType type) {
    switch (type) {
        case ElementType::boolean:
            return Kind::boolean;
        case ElementType::int8:
        case ElementType::int16:
        case ElementType::int32:
        case ElementType::int64:
        case ElementType::uint8:
        case ElementType::uint16:
        case ElementType::uint32:
        case ElementType::uint64:
            return Kind::integer;
        case ElementType::float16:
        case ElementType::bfloat16:
        case ElementType::float32:
        case ElementType::float64:
            return Kind::real;
        case ElementType::complex64:
        case ElementType::complex128:
            return Kind::complex;
        default:
            return Kind::none;
    }
}

double from_float16(std::uint16_t bits) {
    const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    const int exponent = bits >> 10 & 0x1f;
    const int fraction = bits & 0x3ff;
    if (exponent == 0x1f) {
        return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(0x400 + fraction, exponent - 25);
}

double from_bfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Elements are converted a block at a time, so that the loops below exist once per kind and not
// once per pair of element types.
constexpr std::size_t block = 512;

template <typename Stored, typename Wide, typename Convert>
void load_as(Bytes from, std::span<Wide> to, Convert convert) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        Stored value;
        std::memcpy(&value, from.data() + i * sizeof(Stored), sizeof(Stored));
        to[i] = convert(value);
    }
}

template <typename Stored, typename Wide>
void load_as(Bytes from, std::span<Wide> to) {
    load_as<Stored>(from, to, [](Stored value) { return static_cast<Wide>(value); });
}

template <typename Wide>
void load_integers(ElementType type, Bytes from, std::span<Wide> to) {
    switch (type) {
        case ElementType::boolean:
            return load_as<std::uint8_t>(from, to, [](std::uint8_t v) { return Wide{v != 0}; });
        case ElementType::int8:
            return load_as<std::int8_t>(from, to);
        case ElementType::int16:
            return load_as<std::int16_t>(from, to);
        case ElementType::int32:
            return load_as<std::int32_t>(from, to);
        case ElementType::int64:
            return load_as<std::int64_t>(from, to);
        case ElementType::uint8:
            return load_as<std::uint8_t>(from, to);
        case ElementType::uint16:
            return load_as<std::uint16_t>(from, to);
        case ElementType::uint32:
            return load_as<std::uint32_t>(from, to);
        default:
            return load_as<std::uint64_t>(from, to);
    }
}

void load(ElementType type, Bytes from, std::span<std::int64_t> to) {
    load_integers(type, from, to);
}
void load(ElementType type, Bytes from, std::span<Integer> to) {
    load_integers(type, from, to);
}

void load(ElementType type, Bytes from, std::span<double> to) {
    switch (type) {
        case ElementType::float16:
            return load_as<std::uint16_t>(from, to, from_float16);
        case ElementType::bfloat16:
            return load_as<std::uint16_t>(from, to, from_bfloat16);
        case ElementType::float32:
            return load_as<float>(from, to);
        default:
            return load_as<double>(from, to);
    }
}

void load(ElementType type, Bytes from, std::span<Complex> to) {
    if (type == ElementType::complex64) {
        return load_as<std::array<float, 2>>(from, to,
                                             [](const auto& v) { return Complex(v[0], v[1]); });
    }
    load_as<std::array<double, 2>>(from, to, [](const auto& v) { return Complex(v[0], v[1]); });
}

// What the loops need to know of one element or pair, per kind.
bool is_nan(std::int64_t) {
    return false;
}
bool is_nan(Integer) {
    return false;
}
bool is_nan(double value) {
    return std::isnan(value);
}
bool is_nan(const Complex& value) {
    return std::isnan(value.real()) || std::isnan(value.imag());
}

bool is_finite(std::int64_t) {
    return true;
}
bool is_finite(Integer) {
    return true;
}
bool is_finite(double value) {
    return std::isfinite(value);
}
bool is_finite(const Complex& value) {
    return is_finite(value.real()) && is_finite(value.imag());
}

// The std::hypot of an infinite part is inf; inf - inf would be NaN, so equal parts count as 0.
double part_distance(double a, double b) {
    return a == b ? 0 : std::abs(a - b);
}
std::int64_t distance(std::int64_t a, std::int64_t b) {
    return a > b ? a - b : b - a;
}
Integer distance(Integer a, Integer b) {
    return a > b ? a - b : b - a;
}
double distance(double a, double b) {
    return part_distance(a, b);
}
double distance(const Complex& a, const Complex& b) {
    return std::hypot(part_distance(a.real(), b.real()), part_distance(a.imag(), b.imag()));
}

double magnitude(std::int64_t) {
    return 1;
}
double magnitude(Integer) {
    return 1;
}
double magnitude(double value) {
    return std::abs(value);
}
double magnitude(const Complex& value) {
    return std::max(std::abs(value.real()), std::abs(value.imag()));
}

double product(std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
}
double product(Integer a, Integer b) {
    return static_cast<double>(a) * static_cast<double>(b);
}
double product(double a, double b) {
    return a * b;
}
double product(const Complex& a, const Complex& b) {
    return a.real() * b.real() + a.imag() * b.imag();
}

std::int64_t scaled(std::int64_t value, int) {
    return value;
}
Integer scaled(Integer value, int) {
    return value;
}
double scaled(double value, int exponent) {
    return std::ldexp(value, exponent);
}
Complex scaled(const Complex& value, int exponent) {
    return {std::ldexp(value.real(), exponent), std::ldexp(value.imag(), exponent)};
}

/// Integer distances are compared with floor(tolerance), which is exact where a distance rounded to
/// double is not.
template <typename Distance>
Distance limit_of(double tolerance) {
    if constexpr (std::is_same_v<Distance, double>) {
        return tolerance;
    } else {
        // No distance reaches this: 8-byte elements are below 2^65 apart, smaller ones below 2^33.
        constexpr double beyond = sizeof(Distance) > 8 ? 0x1p66 : 0x1p62;
        const double floor = std::min(std::floor(tolerance), beyond);
        return static_cast<Distance>(floor);
    }
}

/// Calls visit(first index, block of a, block of b) for all blocks in turn.
template <typename Wide, typename Visit>
void for_blocks(const Array& a, const Array& b, std::size_t count, Visit visit) {
    std::array<Wide, block> left;
    std::array<Wide, block> right;
    const std::size_t left_item = size_of(a.type).value();
    const std::size_t right_item = size_of(b.type).value();
    for (std::size_t start = 0; start < count; start += block) {
        const std::size_t size = std::min(block, count - start);
        const std::span<Wide> l(left.data(), size);
        const std::span<Wide> r(right.data(), size);
        load(a.type, Bytes(a.data).subspan(start * left_item, size * left_item), l);
        load(b.type, Bytes(b.data).subspan(start * right_item, size * right_item), r);
        visit(static_cast<std::int64_t>(start), l, r);
    }
}

template <typename Wide>
void measure_differences(const Array& a, const Array& b, const Tolerance& tolerance,
                         Comparison& out) {
    using Distance = decltype(distance(Wide{}, Wide{}));
    const Distance limit = limit_of<Distance>(tolerance.absolute);
    const auto beyond = [&](Distance d, const Wide& right) {
        if (tolerance.relative == 0 || d <= limit) return d > limit;
        const double size = is_finite(right) ? static_cast<double>(distance(right, Wide{})) : 0;
        return static_cast<double>(d) > tolerance.absolute + tolerance.relative * size;
    };
    Distance largest = 0;
    double sum = 0;
    double square_sum = 0;
    std::int64_t numbers = 0;
    const auto differ = [&out](std::int64_t index) {
        ++out.different;
        if (!out.first_different) out.first_different = index;
    };
    const auto visit = [&](std::int64_t start, std::span<Wide> left, std::span<Wide> right) {
        for (std::size_t i = 0; i < left.size(); ++i) {
            const bool left_nan = is_nan(left[i]);
            const bool right_nan = is_nan(right[i]);
            out.nan_a += left_nan;
            out.nan_b += right_nan;
            if (left_nan || right_nan) {
                if (left_nan && right_nan) {
                    ++out.equal;
                } else {
                    ++out.nan_only_one;
                    differ(start + static_cast<std::int64_t>(i));
                }
                continue;
            }
            ++numbers;
            const Distance d = distance(left[i], right[i]);
            out.equal += left[i] == right[i];
            if (beyond(d, right[i])) differ(start + static_cast<std::int64_t>(i));
            largest = std::max(largest, d);
            sum += static_cast<double>(d);
            square_sum += static_cast<double>(d) * static_cast<double>(d);
        }
    };
    for_blocks<Wide>(a, b, static_cast<std::size_t>(out.elements), visit);
    out.max_abs_diff = static_cast<double>(largest);
    if (numbers > 0) {
        out.mean_abs_diff = sum / static_cast<double>(numbers);
        out.mse = square_sum / static_cast<double>(numbers);
    }
}

/// Both vectors are scaled by powers of two, so that squares neither overflow nor vanish.
template <typename Wide>
double cosine_of(const Array& a, const Array& b, std::size_t count) {
    double left_largest = 0;
    double right_largest = 0;
    bool all_equal = true;
    for_blocks<Wide>(a, b, count, [&](std::int64_t, std::span<Wide> left, std::span<Wide> right) {
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (!is_finite(left[i]) || !is_finite(right[i])) continue;
            all_equal = all_equal && left[i] == right[i];
            left_largest = std::max(left_largest, magnitude(left[i]));
            right_largest = std::max(right_largest, magnitude(right[i]));
        }
    });
    if (all_equal) return 1;
    const int left_exponent = left_largest > 0 ? -std::ilogb(left_largest) : 0;
    const int right_exponent = right_largest > 0 ? -std::ilogb(right_largest) : 0;
    double dot = 0;
    double left_square = 0;
    double right_square = 0;
    for_blocks<Wide>(a, b, count, [&](std::int64_t, std::span<Wide> left, std::span<Wide> right) {
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (!is_finite(left[i]) || !is_finite(right[i])) continue;
            const Wide l = scaled(left[i], left_exponent);
            const Wide r = scaled(right[i], right_exponent);
            dot += product(l, r);
            left_square += product(l, l);
            right_square += product(r, r);
        }
    });
    if (left_square == 0 && right_square == 0) return 1;
    if (left_square == 0 || right_square == 0) return 0;
    return std::clamp(dot / (std::sqrt(left_square) * std::sqrt(right_square)), -1.0, 1.0);
}

template <typename Wide>
void measure(const Array& a, const Array& b, const Tolerance& tolerance, Comparison& out) {
    measure_differences<Wide>(a, b, tolerance, out);
    out.cosine = cosine_of<Wide>(a, b, static_cast<std::size_t>(out.elements));
}

/// The float32 values in order, numbered so that neighbours differ by one.
std::int64_t float_rank(std::uint32_t bits) {
    const auto size = static_cast<std::int64_t>(bits & 0x7fffffffu);
    return (bits & 0x80000000u) != 0 ? -size : size;
}

std::int64_t largest_ulp(const Array& a, const Array& b) {
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < a.data.size(); i += sizeof(float)) {
        std::uint32_t left;
        std::uint32_t right;
        std::memcpy(&left, a.data.data() + i, sizeof(left));
        std::memcpy(&right, b.data.data() + i, sizeof(right));
        if (std::isnan(std::bit_cast<float>(left)) || std::isnan(std::bit_cast<float>(right))) {
            continue;
        }
        largest = std::max(largest, std::abs(float_rank(left) - float_rank(right)));
    }
    return largest;
}

Status check_data(const Array& array, std::string_view which) {
    const auto needed = npy_byte_count(array.type, array.shape);
    if (needed && *needed == array.data.size()) return {};
    return fail(Cause::bad_argument,
                fmt::format("the {} array has shape [{}] and {} bytes of {}", which,
                            fmt::join(array.shape, ", "), array.data.size(), name_of(array.type)));
}

Status check(const Array& a, const Array& b, const Tolerance& tolerance) {
    for (const double each : {tolerance.absolute, tolerance.relative})
        if (std::isnan(each) || each < 0)
            return fail(Cause::bad_argument,
                        fmt::format("a tolerance of {}, it must be 0 or more", each));
    for (const Array* array : {&a, &b}) {
        if (kind_of(array->type) != Kind::none) continue;
        return fail(Cause::unsupported,
                    fmt::format("comparing arrays of type {}", name_of(array->type)));
    }
    if (kind_of(a.type) != kind_of(b.type)) {
        return fail(
            Cause::bad_argument,
            fmt::format("the element types differ: {} and {}", name_of(a.type), name_of(b.type)),
            "", "convert one of them first");
    }
    if (a.shape != b.shape) {
        return fail(Cause::bad_argument,
                    fmt::format("the shapes differ: [{}] and [{}]", fmt::join(a.shape, ", "),
                                fmt::join(b.shape, ", ")));
    }
    REEF_CHECK(check_data(a, "first"));
    return check_data(b, "second");
}

}  // namespace

Result<Comparison> compare(const Array& a, const Array& b, const Tolerance& tolerance) {
    REEF_CHECK(check(a, b, tolerance));
    Comparison out;
    out.elements = a.element_count();
    switch (kind_of(a.type)) {
        case Kind::real:
            measure<double>(a, b, tolerance, out);
            break;
        case Kind::complex:
            measure<Complex>(a, b, tolerance, out);
            break;
        default:
            if (size_of(a.type).value() < 8 && size_of(b.type).value() < 8) {
                measure<std::int64_t>(a, b, tolerance, out);
            } else {
                measure<Integer>(a, b, tolerance, out);
            }
    }
    if (a.type == ElementType::float32 && b.type == ElementType::float32) {
        out.max_ulp = largest_ulp(a, b);
    }
    return out;
}

}  // namespace reef
