// Sums of products of pairs of 16-bit numbers, of fours of bytes, and of small matrices of bytes.
// Include it per target, after hwy/highway.h.
#if defined(REEF_BASE_SUMS_OF_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_BASE_SUMS_OF_PRODUCTS_INL_H
#undef REEF_BASE_SUMS_OF_PRODUCTS_INL_H
#else
#define REEF_BASE_SUMS_OF_PRODUCTS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] in lane i, modulo 2^32. `d` is the tag of the sums.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>, class V16>
HWY_INLINE V add_pair_products(D d, V16 a, V16 b, V sum) {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3_DL
    // One instruction with VNNI, which this Highway does not use. Written out because Highway's
    // flags for this target (checked at run time together with VNNI) do not include its intrinsic.
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    (void)d;
    return sum;
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
    V unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, a, b, sum, unused);
#else
    V odd = hn::Zero(d);
    const V even = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), odd);
    return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
#endif
}

/// The same of signed bytes, of which a vector of sums wants half a vector: on ARM, where their
/// products, of 16 bits, are added in pairs to 32 bits by one instruction.
inline constexpr bool has_signed_pair_products = HWY_TARGET == HWY_NEON;

template <class D, class V8, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_signed_pair_products(D /*d*/, [[maybe_unused]] V8 a, [[maybe_unused]] V8 b,
                                      V sum) {
    static_assert(sizeof(D) > 0 && has_signed_pair_products);
#if HWY_TARGET == HWY_NEON
    return V(vpadalq_s16(sum.raw, vmull_s8(a.raw, b.raw)));
#else
    return sum;
#endif
}

/// Products of 16-bit lanes, added lane by lane to two vectors of sums: on ARM, where that is one
/// instruction for each.
inline constexpr bool has_widening_products = HWY_TARGET == HWY_NEON;

/// `lo` and `hi` are of the lower and upper lanes.
template <class V16, class V>
HWY_INLINE void add_widening_products([[maybe_unused]] V16 a, [[maybe_unused]] V16 b,
                                      [[maybe_unused]] V& lo, [[maybe_unused]] V& hi) {
    static_assert(sizeof(V) > 0 && has_widening_products);
#if HWY_TARGET == HWY_NEON
    lo.raw = vmlal_s16(lo.raw, vget_low_s16(a.raw), vget_low_s16(b.raw));
    hi.raw = vmlal_high_s16(hi.raw, a.raw, b.raw);
#endif
}

/// Whether add_quad_products() is one instruction: with VNNI, and in vectors of 256 bits with
/// AVX-VNNI, which the target alone does not promise (byte_products()). A build with
/// REEF_AVX_VNNI_BY_AVX512 has the latter in AVX-512's encoding, for tests on machines that have
/// that alone.
inline constexpr bool has_quad_products = HWY_TARGET == HWY_AVX3_DL;
inline constexpr bool may_have_quad_products = has_quad_products || HWY_TARGET == HWY_AVX2;

/// sum + a[4i] * b[4i] + ... + a[4i + 3] * b[4i + 3] in lane i, modulo 2^32, of bytes: those of `a`
/// are unsigned, those of `b` signed. Only for targets that may have it.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_quad_products(D /*d*/, [[maybe_unused]] V a, [[maybe_unused]] V b, V sum) {
    static_assert(sizeof(D) > 0 && may_have_quad_products);
#if HWY_TARGET == HWY_AVX3_DL
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
#elif HWY_TARGET == HWY_AVX2 && defined(REEF_AVX_VNNI_BY_AVX512)
    asm("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "x"(b.raw));
#elif HWY_TARGET == HWY_AVX2
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "x"(b.raw));
#endif
    return sum;
}

/// a[2i] * b[2i] + a[2i + 1] * b[2i + 1] in lane i, of unsigned bytes `a` and signed ones `b` whose
/// sums have 16 bits: where they would not, x86 saturates. `d` is the tag of the sums, int16.
template <class D, class V8, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V pair_products_of_bytes(D d, V8 a, V8 b) {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
    (void)d;
    if constexpr (sizeof(a.raw) == 16) return V{_mm_maddubs_epi16(a.raw, b.raw)};
#if HWY_MAX_BYTES >= 32
    if constexpr (sizeof(a.raw) == 32) return V{_mm256_maddubs_epi16(a.raw, b.raw)};
#endif
#if HWY_MAX_BYTES >= 64
    if constexpr (sizeof(a.raw) == 64) return V{_mm512_maddubs_epi16(a.raw, b.raw)};
#endif
#else
    const hn::RebindToUnsigned<D> du;
    const V odd = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(du, a)));
    const V even = hn::And(hn::BitCast(d, a), hn::Set(d, 0xFF));
    const V signs = hn::BitCast(d, b);
    return hn::Add(hn::Mul(even, hn::ShiftRight<8>(hn::ShiftLeft<8>(signs))),
                   hn::Mul(odd, hn::ShiftRight<8>(signs)));
#endif
}

/// Whether the machine adds products of two bytes up to 16 bits, and no more.
inline constexpr bool has_bounded_quad_products =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4;

/// The same as add_quad_products() in three instructions, of bytes whose products a[2i] * b[2i] +
/// a[2i + 1] * b[2i + 1] have 16 bits; any others would saturate.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_bounded_quad_products(D d, [[maybe_unused]] V a, [[maybe_unused]] V b, V sum) {
    static_assert(sizeof(D) > 0 && has_bounded_quad_products);
    const hwy::HWY_NAMESPACE::Repartition<std::int16_t, D> d16;
    return add_pair_products(d, pair_products_of_bytes(d16, a, b), hwy::HWY_NAMESPACE::Set(d16, 1),
                             sum);
}

/// The same as add_quad_products() of any bytes.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_undivided_quad_products(D d, V a, V b, V sum) {
    namespace hn = hwy::HWY_NAMESPACE;
    const auto even = hn::Set(d, 0x00FF00FF);
    sum = add_bounded_quad_products(d, a, hn::And(b, even), sum);
    return add_bounded_quad_products(d, a, hn::AndNot(even, b), sum);
}

/// The same of signed bytes on both sides: one instruction of ARM's with dotprod
/// (byte_products()).
inline constexpr bool may_have_signed_quad_products = HWY_TARGET == HWY_NEON;

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_signed_quad_products(D /*d*/, [[maybe_unused]] V a, [[maybe_unused]] V b, V sum) {
    static_assert(sizeof(D) > 0 && may_have_signed_quad_products);
#if HWY_TARGET == HWY_NEON
    // An extension of 8.2, which assemblers refuse on top of Highway's 8.0.
    asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
        : "+w"(sum.raw)
        : "w"(a.raw), "w"(b.raw));
#endif
    return sum;
}

/// The 2 x 2 sums, row by row, of the products of the rows of `a` and the rows of `b`, each of
/// which are two of eight signed bytes: of ARM's with i8mm.
inline constexpr bool may_have_matrix_products = HWY_TARGET == HWY_NEON;

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_matrix_products(D /*d*/, [[maybe_unused]] V a, [[maybe_unused]] V b, V sum) {
    static_assert(sizeof(D) > 0 && may_have_matrix_products);
#if HWY_TARGET == HWY_NEON
    asm(".arch armv8.2-a+crypto+dotprod+i8mm\n\tsmmla %0.4s, %1.16b, %2.16b"
        : "+w"(sum.raw)
        : "w"(a.raw), "w"(b.raw));
#endif
    return sum;
}

#endif
}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
