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
HWY_NOINLINE V rescaled_product(D d, V product, const ProductParameters& p) {
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

/// In float32 and with the zero point; false where one of them is doubtful. Less than 2^16 steps
/// (no scale is above 1) that are added to 1.5 * 2^23 are rounded into its lowest bits.
HWY_INLINE bool sure_products(const Products& products, const FastProduct& p,
                              Quarter (&values)[4]) {
    const hn::ScalableTag<float> df;
    const QuarterTag d;
    constexpr float rounder = 0x1.8p23F;
    const auto zero = hn::Set(d, std::bit_cast<std::int32_t>(rounder) - p.exact.zero_out);
    auto most = hn::Zero(df);
    REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
        const auto real_product = hn::ConvertTo(df, products.of[k]);
        const auto offset = hn::CopySignToAbs(hn::Set(df, p.first.offset), real_product);
        const auto real = hn::MulAdd(real_product, hn::Set(df, p.first.scale), offset);
        const auto rounded = hn::Add(real, hn::Set(df, rounder));
        const auto whole = hn::Sub(rounded, hn::Set(df, rounder));
        most = hn::Max(most, hn::Abs(hn::Sub(real, whole)));
        values[k] = hn::Sub(hn::BitCast(d, rounded), zero);
    }
    return hn::AllFalse(df, hn::Gt(most, hn::Set(df, 0.5F - p.first.doubt)));
}

template <typename T>
HWY_INLINE hn::Vec<ByteTag> product_of_bytes(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b,
                                             const FastProduct& p) {
    constexpr std::int32_t lowest = std::numeric_limits<T>::min();
    const Products products(from_least<T>(ByteTag(), a), from_least<T>(ByteTag(), b),
                            p.exact.zero_a - lowest, p.exact.zero_b - lowest);
    Quarter values[4];
    if (HWY_UNLIKELY(!sure_products(products, p, values))) {
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) values[k] =
            rescaled_product(QuarterTag(), products.of[k], p.exact);
    }
    return clamped_bytes<T>(values, p.exact.clamp);
}

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastProduct& p) {
    // A copy: stores of bytes could change anything held by reference.
    const FastProduct by_value = p;
    byte_run(a, a_step, b, b_step, out, count,
             [by_value](auto x, auto y) HWY_ATTR { return product_of_bytes<T>(x, y, by_value); });
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
