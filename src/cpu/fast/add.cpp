#include <cstdlib>
#include <limits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/add.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

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

/// All elements of a vector; false where one of them is doubtful.
HWY_INLINE bool sure_sums(const Quarter (&a)[4], const Quarter (&b)[4], const SumInFixedPoint& sum,
                          Quarter (&values)[4]) {
    const QuarterTag d;
    const auto below = hn::Set(d, (1 << sum.shift) - 1);
    Quarter least = below;
    REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
        const auto of_a = hn::Add(hn::Mul(a[k], hn::Set(d, sum.of_a)), hn::Set(d, sum.start));
        const auto whole = hn::Add(hn::Mul(b[k], hn::Set(d, sum.of_b)), of_a);
        values[k] = hn::ShiftRightSame(whole, sum.shift);
        least = hn::Min(least, hn::And(whole, below));
    }
    return hn::AllFalse(d, hn::Lt(least, hn::Set(d, sum.doubtful)));
}

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

/// One vector of bytes. Copies of what is given are the caller's: stores of bytes could change
/// anything held by reference.
template <typename T>
HWY_INLINE hn::Vec<ByteTag> sum_of_bytes(hn::Vec<ByteTag> a8, hn::Vec<ByteTag> b8,
                                         const FastSum& sum, const SumInIntegers& exact,
                                         bool swapped) {
    Quarter a[4], b[4], values[4];
    widen_bytes(from_least<T>(ByteTag(), a8), a);
    widen_bytes(from_least<T>(ByteTag(), b8), b);
    if (HWY_UNLIKELY(!sum.first.pays || !sure_sums(a, b, sum.first, values)))
        return exact_sum_of_bytes<T>(a8, b8, sum.exact.clamp, exact, swapped);
    return clamped_bytes<T>(values, sum.exact.clamp);
}

template <typename T>
void add_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastSum& sum) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    const FastSum by_value = sum;
    const bool swapped = std::abs(sum.exact.a.multiplier) != 1 << 30 || sum.exact.a.shift != 0;
    const SumInIntegers exact(swapped ? sum.exact.with_swapped_inputs() : sum.exact, lowest);
    byte_run(a, a_step, b, b_step, out, count, [=](auto x, auto y) HWY_ATTR {
        return sum_of_bytes<T>(x, y, by_value, exact, swapped);
    });
}

#endif

void add_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
}

void add_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
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
