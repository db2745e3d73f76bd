#include <bit>
#include <limits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mul.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/binary_run-inl.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/fixed_point-inl.h"
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

/// Products of elements less their zero points, and those of a vector's bytes.
struct Products {
    Quarter of[4];

    HWY_INLINE Products(hn::Vec<ByteTag> a8, hn::Vec<ByteTag> b8, std::int32_t zero_a,
                        std::int32_t zero_b) {
        const WordTag d16;
        hn::Vec<WordTag> a[2], b[2], lower[2], upper[2];
        widen_bytes(a8, a);
        widen_bytes(b8, b);
        REEF_UNROLL for (std::size_t k = 0; k < 2; ++k) {
            const auto x = hn::Sub(a[k], hn::Set(d16, static_cast<std::int16_t>(zero_a)));
            const auto y = hn::Sub(b[k], hn::Set(d16, static_cast<std::int16_t>(zero_b)));
            lower[k] = hn::Mul(x, y);
            upper[k] = hn::MulHigh(x, y);
        }
        join_words(lower, upper, of);
    }
};

/// In float32 and with the zero point. Less than 2^16 steps (no scale is above 1) that are added to
/// 1.5 * 2^23 are rounded into its lowest bits. Vectors hold what scalars side by side would have
/// to be broadcast from with every use.
class SureProducts {
  public:
    explicit SureProducts(const FastProduct& p)
        : scale_(hn::Set(FloatTag(), p.first.scale)),
          offset_(hn::Set(FloatTag(), p.first.offset)),
          rounder_(hn::Set(FloatTag(), rounder)),
          most_(hn::Set(FloatTag(), 0.5F - p.first.doubt)),
          zero_(hn::Set(QuarterTag(), std::bit_cast<std::int32_t>(rounder) - p.exact.zero_out)) {}

    /// False where one of them is doubtful.
    HWY_INLINE bool operator()(const Products& products, Quarter (&values)[4]) const {
        const FloatTag df;
        const QuarterTag d;
        auto most = hn::Zero(df);
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto real_product = hn::ConvertTo(df, products.of[k]);
            const auto offset = hn::CopySignToAbs(offset_, real_product);
            const auto real = hn::MulAdd(real_product, scale_, offset);
            const auto rounded = hn::Add(real, rounder_);
            const auto whole = hn::Sub(rounded, rounder_);
            most = hn::Max(most, hn::Abs(hn::Sub(real, whole)));
            values[k] = hn::Sub(hn::BitCast(d, rounded), zero_);
        }
        return hn::AllFalse(df, hn::Gt(most, most_));
    }

  private:
    using FloatTag = hn::ScalableTag<float>;
    static constexpr float rounder = 0x1.8p23F;
    hn::Vec<FloatTag> scale_, offset_, rounder_, most_;
    Quarter zero_;
};

/// One vector of bytes by the integers that define them: apart, so that the others keep nothing for
/// it in registers.
template <typename T>
HWY_NOINLINE hn::Vec<ByteTag> exact_product_of_bytes(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b,
                                                     const ProductParameters& p) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    const Products products(from_least<T>(ByteTag(), a), from_least<T>(ByteTag(), b),
                            p.zero_a - lowest, p.zero_b - lowest);
    Quarter values[4];
    REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) values[k] =
        rescaled_product(QuarterTag(), products.of[k], p);
    return clamped_bytes<T>(values, p.clamp);
}

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastProduct& p) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    // A copy: stores of bytes could change anything held by reference.
    const ProductParameters exact = p.exact;
    const SureProducts sure(p);
    byte_run(a, a_step, b, b_step, out, count, [=](auto x, auto y) HWY_ATTR {
        const Products products(from_least<T>(ByteTag(), x), from_least<T>(ByteTag(), y),
                                exact.zero_a - lowest, exact.zero_b - lowest);
        Quarter values[4];
        if (HWY_UNLIKELY(!sure(products, values))) return exact_product_of_bytes<T>(x, y, exact);
        return clamped_bytes<T>(values, exact.clamp);
    });
}

#endif

void mul_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
}
void mul_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
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
