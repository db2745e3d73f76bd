#include <algorithm>
#include <limits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mul.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "base/upper_halves-inl.h"
#include "cpu/fast/binary_run-inl.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/fast/step_words-inl.h"
#include "cpu/reference/mul.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastProduct& p) {
    element_run(a, a_step, b, b_step, out, count, QuantizedProduct<T>{p.exact});
}

#else

/// The vector form of QuantizedProduct; `product` is that of the elements less their zero points.
template <class D, class V = hn::Vec<D> >
HWY_INLINE V rescaled_product(D d, V product, const ProductParameters& p) {
    const V scaled = multiply_by_quantized_multiplier(d, product, p.multiplier);
    // Clamped before the zero point is added, the sum cannot overflow.
    return hn::Add(hn::Clamp(scaled, hn::Set(d, p.clamp.min - p.zero_out),
                             hn::Set(d, p.clamp.max - p.zero_out)),
                   hn::Set(d, p.zero_out));
}

/// Products of elements less their zero points, of a vector's bytes: those of every other word of
/// one vector in of[0], the ones between them in of[1], of the other in of[2] and of[3].
struct Products {
    Quarter of[4];

    HWY_INLINE Products(hn::Vec<ByteTag> a8, hn::Vec<ByteTag> b8, std::int32_t zero_a,
                        std::int32_t zero_b) {
        const WordTag d16;
        const QuarterTag d32;
        const auto even = hn::BitCast(d16, hn::Set(d32, 0xFFFF));
        hn::Vec<WordTag> a[2], b[2];
        widen_bytes(a8, a);
        widen_bytes(b8, b);
        REEF_UNROLL for (std::size_t k = 0; k < 2; ++k) {
            const auto x = hn::Sub(a[k], hn::Set(d16, static_cast<std::int16_t>(zero_a)));
            const auto y = hn::Sub(b[k], hn::Set(d16, static_cast<std::int16_t>(zero_b)));
            of[2 * k] = product_of_pairs(hn::And(even, x), y);
            of[2 * k + 1] = product_of_pairs(hn::AndNot(even, x), y);
        }
    }

  private:
    static HWY_INLINE Quarter product_of_pairs(hn::Vec<WordTag> x, hn::Vec<WordTag> y) {
        const QuarterTag d32;
        return reef::HWY_NAMESPACE::add_pair_products(d32, x, y, hn::Zero(d32));
    }
};

/// In float32 and with the zero point. Vectors hold what scalars side by side would have to be
/// broadcast from with every use.
class SureProducts {
  public:
    /// Of up to 384 steps, 1.5 * 2^24 last bits: 1.5 for the factor, 1 each for the product and the
    /// sum, half each for what that starts from and for the number, 1 for what is subtracted.
    static constexpr std::uint16_t most_off = 6;

    /// Precondition: it pays.
    explicit SureProducts(const FastProduct& p)
        : scale_(hn::Set(FloatTag(), p.first.scale * StepWords::one)),
          start_(hn::Set(
              FloatTag(),
              (static_cast<float>(p.exact.zero_out) + 0.5F + p.first.offset) * StepWords::one +
                  most_off)),
          shift_(std::min(16 + p.first.shift, 31)) {}

    HWY_INLINE StepWords operator()(const Products& products) const {
        const FloatTag df;
        const QuarterTag d32;
        const hn::RebindToUnsigned<QuarterTag> du32;
        Quarter fixed[4];
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto real = hn::MulAdd(hn::ConvertTo(df, products.of[k]), scale_, start_);
            // Twice the offset less of a product below 0, whose upper 16 bits are ones: 2^(16 - n)
            // of n bits to the right, less the last bit; from n = 15 on that one.
            const auto twice = hn::ShiftRightSame(hn::BitCast(du32, products.of[k]), shift_);
            fixed[k] = hn::Sub(nearest(real), hn::BitCast(d32, twice));
        }
        return StepWords(fixed);
    }

  private:
    using FloatTag = hn::ScalableTag<float>;
    hn::Vec<FloatTag> scale_, start_;
    int shift_;
};

/// One vector of bytes by the integers that define them: apart, so that the others keep nothing for
/// it in registers.
template <typename T>
HWY_NOINLINE hn::Vec<ByteTag> exact_product_of_bytes(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b,
                                                     const ProductParameters& p) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    const Products products(from_least<T>(ByteTag(), a), from_least<T>(ByteTag(), b),
                            p.zero_a - lowest, p.zero_b - lowest);
    const WordTag d16;
    hn::Vec<WordTag> words[2];
    REEF_UNROLL for (std::size_t k = 0; k < 2; ++k) {
        const auto even = rescaled_product(QuarterTag(), products.of[2 * k], p);
        const auto odd = rescaled_product(QuarterTag(), products.of[2 * k + 1], p);
        words[k] = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(odd)), hn::BitCast(d16, even));
    }
    return narrowed_words<T>(words[0], words[1]);
}

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastProduct& p) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    // A copy: stores of bytes could change anything held by reference.
    const ProductParameters exact = p.exact;
    if (!p.first.pays) {
        byte_run(a, a_step, b, b_step, out, count,
                 [=](auto x, auto y) HWY_ATTR { return exact_product_of_bytes<T>(x, y, exact); });
        return;
    }
    const SureProducts sure(p);
    byte_run(a, a_step, b, b_step, out, count, [=](auto x, auto y) HWY_ATTR {
        const StepWords steps =
            sure(Products(from_least<T>(ByteTag(), x), from_least<T>(ByteTag(), y),
                          exact.zero_a - lowest, exact.zero_b - lowest));
        if (HWY_UNLIKELY(!steps.are_sure(SureProducts::most_off)))
            return exact_product_of_bytes<T>(x, y, exact);
        return in_range<T>(narrowed_words<T>(steps.words[0], steps.words[1]), exact.clamp);
    });
}

#endif

void mul_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
    reef::HWY_NAMESPACE::clear_upper_halves();
}
void mul_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
    reef::HWY_NAMESPACE::clear_upper_halves();
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(mul_run_u8);
HWY_EXPORT(mul_run_i8);

void mul_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_u8)(a, a_step, b, b_step, out, count, p);
}
void mul_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastProduct& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_i8)(a, a_step, b, b_step, out, count, p);
}

}  // namespace reef::cpu
#endif
