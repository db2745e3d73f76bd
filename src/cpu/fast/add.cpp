#include <cassert>
#include <cstdlib>
#include <limits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/add.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "base/upper_halves-inl.h"
#include "cpu/fast/binary_run-inl.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/reference/add.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void add_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastSum& sum) {
    element_run(a, a_step, b, b_step, out, count, QuantizedSum<T>{sum.exact});
}

#else

/// Divided by 2^right, halves away from zero, of numbers of a magnitude below 2^30.
struct RoundingShift {
    explicit RoundingShift(int by)
        : right(by), half(by > 0 ? 1 << (by - 1) : 0), down(by > 0 ? -1 : 0) {}

    HWY_INLINE Quarter operator()(Quarter x) const {
        const QuarterTag d;
        const auto down_below_zero = hn::And(hn::BroadcastSignBit(x), hn::Set(d, down));
        return hn::ShiftRightSame(hn::Add(hn::Add(x, hn::Set(d, half)), down_below_zero), right);
    }

    int right;
    std::int32_t half, down;
};

/// QuantizedSum on vectors of elements above the lowest value of their type. One of the multipliers
/// is 1/2, or -1/2 of SUB: the scales' larger over twice itself, so that nothing is rounded. The
/// other's product with 31 bits is taken in two parts.
class SumInIntegers {
  public:
    /// `p.a` is the multiplier that does not round.
    SumInIntegers(const SumParameters& p, std::int32_t lowest)
        : out_(p.out),
          zero_a_(p.zero_a - lowest),
          zero_b_(p.zero_b - lowest),
          zero_out_(p.zero_out),
          of_a_(p.a.multiplier >> bits_below),
          of_b_(p.b.multiplier >> bits_below),
          of_b_below_(p.b.multiplier & ((1 << bits_below) - 1)),
          shift_b_(-p.b.shift),
          shift_out_(-p.out.shift) {}

    HWY_INLINE Quarter operator()(Quarter a, Quarter b) const {
        const QuarterTag d;
        const auto left = hn::Mul(hn::Sub(a, hn::Set(d, zero_a_)), hn::Set(d, of_a_));
        const auto steps = hn::Sub(b, hn::Set(d, zero_b_));
        const auto below = hn::ShiftRight<bits_below>(
            hn::Add(hn::Mul(steps, hn::Set(d, of_b_below_)), hn::Set(d, 1 << (bits_below - 1))));
        const auto right = shift_b_(hn::Add(hn::Mul(steps, hn::Set(d, of_b_)), below));
        const auto high = saturating_rounding_doubling_high_mul(d, hn::Add(left, right),
                                                                hn::Set(d, out_.multiplier));
        return hn::Add(shift_out_(high), hn::Set(d, zero_out_));
    }

  private:
    static constexpr int bits_below = 31 - SumParameters::spare_bits;
    Multiplier out_;
    std::int32_t zero_a_, zero_b_, zero_out_, of_a_, of_b_, of_b_below_;
    RoundingShift shift_b_, shift_out_;
};

/// SumInFixedPoint's factors on vectors. What holds them is a vector itself: scalars side by side
/// are loaded together and taken apart again with every use.
class FixedPointFactors {
  public:
    explicit FixedPointFactors(const SumInFixedPoint& sum)
        : start_(hn::Set(QuarterTag(), sum.start)),
#if HWY_ARCH_X86
          above_(pair(sum.of_a >> bits_below, sum.of_b >> bits_below)),
          below_(pair(sum.of_a & mask_below, sum.of_b & mask_below))
#else
          of_a_(hn::Set(QuarterTag(), sum.of_a)),
          of_b_(hn::Set(QuarterTag(), sum.of_b))
#endif
    {
    }

    /// start + a * of_a + b * of_b of each element, in widen_bytes()'s order.
    HWY_INLINE void operator()(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b, Quarter (&sums)[4]) const {
#if HWY_ARCH_X86
        // x86 adds products of two 16-bit numbers as fast as it takes bytes apart, and multiplies
        // 32-bit ones at half that: factors in two parts, of elements side by side.
        const ByteTag d8;
        const WordTag d16;
        const QuarterTag d32;
        const hn::Vec<ByteTag> pairs[2] = {hn::InterleaveLower(d8, a, b),
                                           hn::InterleaveUpper(d8, a, b)};
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto bytes = k % 2 == 0 ? hn::InterleaveLower(d8, pairs[k / 2], hn::Zero(d8))
                                          : hn::InterleaveUpper(d8, pairs[k / 2], hn::Zero(d8));
            const auto words = hn::BitCast(d16, bytes);
            const auto above =
                reef::HWY_NAMESPACE::add_pair_products(d32, words, above_, hn::Zero(d32));
            sums[k] = reef::HWY_NAMESPACE::add_pair_products(
                d32, words, below_, hn::Add(hn::ShiftLeft<bits_below>(above), start_));
        }
#else
        Quarter of_b[4];
        widen_bytes(a, sums);
        widen_bytes(b, of_b);
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto with_a = hn::Add(hn::Mul(sums[k], of_a_), start_);
            sums[k] = hn::Add(hn::Mul(of_b[k], of_b_), with_a);
        }
#endif
    }

  private:
    Quarter start_;
#if HWY_ARCH_X86
    static constexpr int bits_below = 15;
    static constexpr std::int32_t mask_below = (1 << bits_below) - 1;
    hn::Vec<WordTag> above_, below_;

    /// 255 times a factor fits int32, so that the part above has 9 bits.
    static HWY_INLINE hn::Vec<WordTag> pair(std::int32_t of_a, std::int32_t of_b) {
        const auto a = static_cast<std::int16_t>(of_a), b = static_cast<std::int16_t>(of_b);
        assert(a == of_a && b == of_b);
        return hn::OddEven(hn::Set(WordTag(), b), hn::Set(WordTag(), a));
    }
#else
    Quarter of_a_, of_b_;
#endif
};

/// SumInFixedPoint on vectors, of T's bytes.
class SureSums {
  public:
    explicit SureSums(const SumInFixedPoint& sum)
        : factors_(sum),
          below_(hn::Set(QuarterTag(), (1 << sum.shift) - 1)),
          doubtful_(hn::Set(QuarterTag(), sum.doubtful)),
          shift_(sum.shift) {}

    /// All elements of a vector; false where one of them is doubtful.
    HWY_INLINE bool operator()(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b, Quarter (&values)[4]) const {
        const QuarterTag d;
        factors_(a, b, values);
        Quarter least = below_;
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            least = hn::Min(least, hn::And(values[k], below_));
            values[k] = hn::ShiftRightSame(values[k], shift_);
        }
        return hn::AllFalse(d, hn::Lt(least, doubtful_));
    }

  private:
    FixedPointFactors factors_;
    Quarter below_, doubtful_;
    int shift_;
};

/// One vector of bytes by the integers that define them: apart, so that the others keep nothing for
/// it in registers.
template <typename T>
HWY_NOINLINE hn::Vec<ByteTag> exact_sum_of_bytes(hn::Vec<ByteTag> a8, hn::Vec<ByteTag> b8,
                                                 ClampRange clamp, const SumInIntegers& exact,
                                                 bool swapped) {
    Quarter a[4], b[4], values[4];
    widen_bytes(from_least<T>(ByteTag(), a8), a);
    widen_bytes(from_least<T>(ByteTag(), b8), b);
    REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) values[k] =
        swapped ? exact(b[k], a[k]) : exact(a[k], b[k]);
    return clamped_bytes<T>(values, clamp);
}

template <typename T>
void add_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastSum& sum) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    const bool swapped = std::abs(sum.exact.a.multiplier) != 1 << 30 || sum.exact.a.shift != 0;
    const SumInIntegers exact(swapped ? sum.exact.with_swapped_inputs() : sum.exact, lowest);
    // Copies: stores of bytes could change anything held by reference.
    const ClampRange clamp = sum.exact.clamp;
    if (!sum.first.pays) {
        byte_run(a, a_step, b, b_step, out, count, [=](auto x, auto y) HWY_ATTR {
            return exact_sum_of_bytes<T>(x, y, clamp, exact, swapped);
        });
        return;
    }
    const SureSums sure(sum.first);
    byte_run(a, a_step, b, b_step, out, count, [=](auto x, auto y) HWY_ATTR {
        Quarter values[4];
        if (HWY_UNLIKELY(!sure(from_least<T>(ByteTag(), x), from_least<T>(ByteTag(), y), values)))
            return exact_sum_of_bytes<T>(x, y, clamp, exact, swapped);
        return clamped_bytes<T>(values, clamp);
    });
}

#endif

void add_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
    reef::HWY_NAMESPACE::clear_upper_halves();
}

void add_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
    reef::HWY_NAMESPACE::clear_upper_halves();
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(add_run_u8);
HWY_EXPORT(add_run_i8);

void add_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum) {
    HWY_DYNAMIC_DISPATCH(add_run_u8)(a, a_step, b, b_step, out, count, sum);
}

void add_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastSum& sum) {
    HWY_DYNAMIC_DISPATCH(add_run_i8)(a, a_step, b, b_step, out, count, sum);
}

}  // namespace reef::cpu
#endif
