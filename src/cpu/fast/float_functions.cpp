#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_functions.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "cpu/fast/float_vectors-inl.h"
#include "cpu/reference/float_runs.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

/// out[i] = function(d, in[i])
template <class Function>
HWY_INLINE void map(const float* in, float* out, std::size_t count, const Function& function) {
    each_vector(count, [&](auto d, std::size_t i)
                           HWY_ATTR { hn::StoreU(function(d, hn::LoadU(d, in + i)), d, out + i); });
}

/// The same in float64, rounded once more at the end, of a function that is x itself above 30.
/// (Some targets make the largest float32 of infinity.)
template <class Function>
HWY_INLINE void map_in_double(const float* in, float* out, std::size_t count,
                              const Function& function) {
    const auto vectors = [&](auto d, std::size_t i) HWY_ATTR {
        const hn::Rebind<float, decltype(d)> df;
        const auto x = hn::LoadU(df, in + i);
        const auto y = hn::DemoteTo(df, function(d, hn::PromoteTo(d, x)));
        hn::StoreU(hn::IfThenElse(hn::Gt(x, hn::Set(df, 30.0F)), x, y), df, out + i);
    };
    const hn::ScalableTag<double> d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vectors(d, i);
    for (; i < count; ++i) vectors(hn::CappedTag<double, 1>(), i);
}

/// c[0] + c[1] x + ...
template <class D, class V, std::size_t kTerms, typename T = hn::TFromD<D>>
HWY_INLINE V polynomial(D d, V x, const T (&c)[kTerms]) {
    V sum = hn::Set(d, c[kTerms - 1]);
    for (std::size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
    return sum;
}

/// x as n ln 2 + r, n the nearest integer, and exp(r) - 1.
template <class D>
struct Reduced {
    hn::Vec<hn::RebindToSigned<D>> n;
    hn::Vec<D> rest;
};

/// Precondition: numbers whose n is below 2^8.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Reduced<D> reduced(D d, V x) {
    const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, std::numbers::log2e_v<float>)));
    const V multiple = hn::ConvertTo(d, n);
    // ln 2 in two parts, of which the first has zeros where its products would be rounded. What r
    // loses is added where it is not lost: without it the exponential would be 1.02 ulp away.
    const V high = hn::MulAdd(multiple, hn::Set(d, -0.693145751953125F), x);
    const V low = hn::Mul(multiple, hn::Set(d, 1.428606765330187045e-6F));
    const V r = hn::Sub(high, low);
    const V lost = hn::Sub(hn::Sub(high, r), low);
    constexpr float terms[] = {0.5F,
                               0.166666671633720397949219F,
                               0.0416664853692054748535156F,
                               0.00833336077630519866943359F,
                               0.00139304355252534151077271F,
                               0.000198527617612853646278381F};
    return {n, hn::Add(r, hn::MulAdd(hn::Mul(r, r), polynomial(d, r, terms), lost))};
}

template <class D, class N>
HWY_INLINE hn::Vec<D> power_of_two(D d, N n) {
    const hn::RebindToSigned<D> di;
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// Within 1 ulp; what is no number stays none.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
    const auto none = hn::IsNaN(x);
    // Of what lies beyond them it is 0 and infinite.
    constexpr float least = -105, most = 89;
    const auto [n, rest] = reduced(
        d, hn::Clamp(hn::IfThenElse(none, hn::Zero(d), x), hn::Set(d, least), hn::Set(d, most)));
    // No float32 is as small or as large as some of the powers: half of each at a time.
    const auto half = hn::ShiftRight<1>(n);
    const V result = hn::Mul(hn::Mul(hn::Add(hn::Set(d, 1.0F), rest), power_of_two(d, half)),
                             power_of_two(d, hn::Sub(n, half)));
    return hn::IfThenElse(none, x, result);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential_in_double(D d, V x) {
    const auto none = hn::IsNaN(x);
    // Of what lies beyond them it is 0 and infinite.
    constexpr double least = -800, most = 720;
    const V inside =
        hn::Clamp(hn::IfThenElse(none, hn::Zero(d), x), hn::Set(d, least), hn::Set(d, most));
    return hn::IfThenElse(none, x, hn::Exp(d, inside));
}

/// exp(x) - 1 within 2 ulp, 0 for x above 0 and for what is no number. It is 2^n (exp(r) - 1) +
/// (2^n - 1), of which the first factor keeps its digits where x is near 0, and the last term is
/// exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential_below_one(D d, V x) {
    // Below it, it is -1 in float32.
    constexpr float least = -20;
    const auto [n, rest] = reduced(
        d, hn::Max(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), x, hn::Zero(d)), hn::Set(d, least)));
    const V power = power_of_two(d, n);
    return hn::MulAdd(rest, power, hn::Sub(power, hn::Set(d, 1.0F)));
}

/// Within 1 ulp. x is 2^n (1 + f) with 1 + f between the roots of 1/2 and of 2; the logarithm of
/// that is f - f^2/2 + s (f^2/2 + R(s^2)) with s = f / (2 + f): the form and the numbers of FDLIBM.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logarithm(D d, V x) {
    const hn::RebindToSigned<D> di;
    constexpr float least_normal = std::numeric_limits<float>::min();
    const auto denormal = hn::Lt(x, hn::Set(d, least_normal));
    const V normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p25F)), x);
    // The bits of the root of 1/2 become those of 1, so that the exponent's field counts from
    // there.
    constexpr std::int32_t root_of_half = 0x3F3504F3, one = 0x3F800000;
    const auto bits = hn::Add(hn::BitCast(di, normal), hn::Set(di, one - root_of_half));
    const auto n = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127));
    const V shifted = hn::IfThenElse(denormal, hn::Set(d, -25.0F), hn::Zero(d));
    const V power = hn::Add(hn::ConvertTo(d, n), shifted);
    const auto mantissa = hn::And(bits, hn::Set(di, 0x007FFFFF));
    const V f =
        hn::Sub(hn::BitCast(d, hn::Add(mantissa, hn::Set(di, root_of_half))), hn::Set(d, 1.0F));
    const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0F)));
    const V z = hn::Mul(s, s);
    constexpr float terms[] = {0xAAAAAA.0p-24F, 0xCCCE13.0p-25F, 0x91E9EE.0p-25F, 0xF89E26.0p-26F};
    const V rest = hn::Mul(z, polynomial(d, z, terms));
    const V half_square = hn::Mul(hn::Set(d, 0.5F), hn::Mul(f, f));
    // ln 2 in two parts: the products of the first and 8 bits are exact.
    const V low =
        hn::MulAdd(power, hn::Set(d, 9.0580006145e-06F), hn::Mul(s, hn::Add(half_square, rest)));
    const V sum =
        hn::MulAdd(power, hn::Set(d, 6.9313812256e-01F), hn::Sub(f, hn::Sub(half_square, low)));
    const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const V none = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    const V positive = hn::IfThenElse(hn::Lt(x, infinity), sum, x);
    const V other = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), none);
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), positive, other);
}

/// From exp(-|x|), which neither overflows nor loses what is small.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic(D d, V x) {
    const V one = hn::Set(d, 1.0F);
    const V e = exponential(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// From exp(-2|x|) - 1, within 3 ulp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
    const V e = exponential_below_one(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.0F)));
    const V size = hn::Div(e, hn::Sub(hn::Set(d, -2.0F), e));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(size, x));
}

/// Some targets make 0 of -0.
template <class V>
HWY_INLINE V floor_of(V x) {
    return hn::CopySign(hn::Floor(x), x);
}
template <class V>
HWY_INLINE V ceil_of(V x) {
    return hn::CopySign(hn::Ceil(x), x);
}

/// Halves to the even number; of negative numbers that become 0 it is 0, not -0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V nearest_even(D d, V x) {
    const V whole = hn::CopySign(hn::Round(x), x);
    const auto vanishes = hn::And(hn::Eq(whole, hn::Zero(d)), hn::Ne(x, hn::Zero(d)));
    return hn::IfThenElse(vanishes, hn::Zero(d), whole);
}

/// x times the share of a normal distribution below it, by exp(z^2) erfc(z), z = |x| / sqrt(2), of
/// which a polynomial in (z - 3) / (z + 3) is the 1e10th part away at most up to 11. Beyond, x
/// times that share is 0 in float32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
    constexpr double terms[] = {
        0.17900115117673163,    -0.32623356020497879,   0.24560380251848196,
        -0.1501159286712829,    0.071665817709934493,   -0.024392613814609231,
        0.0042692860889892541,  0.00070849842459701326, -0.00059745044767645593,
        4.2807909399140131e-05, 6.3971982234961865e-05, -9.1120703455313682e-06,
        -6.487473397951595e-06};
    const V z = hn::Mul(hn::Abs(x), hn::Set(d, 1 / std::numbers::sqrt2));
    const V inside = hn::Min(z, hn::Set(d, 11.0));
    const V t = hn::Div(hn::Sub(inside, hn::Set(d, 3.0)), hn::Add(inside, hn::Set(d, 3.0)));
    const V tail =
        hn::Mul(hn::Mul(hn::Set(d, 0.5), exponential_in_double(d, hn::Neg(hn::Mul(z, z)))),
                polynomial(d, t, terms));
    const V share = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0), tail));
    return hn::Mul(x, share);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_by_tanh(D d, V x) {
    constexpr double twice_root = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const V cube = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, 0.044715), x), x), x);
    const V e = exponential_in_double(d, hn::Mul(hn::Set(d, -twice_root), hn::Add(x, cube)));
    return hn::Div(x, hn::Add(hn::Set(d, 1.0), e));
}

void of_run(FloatFunction what, const float* in, float* out, std::size_t count) {
    const auto run = [&](const auto& function) HWY_ATTR { map(in, out, count, function); };
    const auto run_in_double = [&](const auto& function)
                                   HWY_ATTR { map_in_double(in, out, count, function); };
    switch (what) {
        case FloatFunction::magnitude:
            return run([](auto, auto x) HWY_ATTR { return hn::Abs(x); });
        case FloatFunction::opposite:
            return run([](auto, auto x) HWY_ATTR { return hn::Neg(x); });
        case FloatFunction::square:
            return run([](auto, auto x) HWY_ATTR { return hn::Mul(x, x); });
        case FloatFunction::floor:
            return run([](auto, auto x) HWY_ATTR { return floor_of(x); });
        case FloatFunction::ceil:
            return run([](auto, auto x) HWY_ATTR { return ceil_of(x); });
        case FloatFunction::nearest_even:
            return run([](auto d, auto x) HWY_ATTR { return nearest_even(d, x); });
        case FloatFunction::root:
            return run([](auto, auto x) HWY_ATTR { return hn::Sqrt(x); });
        case FloatFunction::inverse_root:
            return run([](auto d, auto x)
                           HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), hn::Sqrt(x)); });
        case FloatFunction::exponential:
            return run([](auto d, auto x) HWY_ATTR { return exponential(d, x); });
        case FloatFunction::logarithm:
            return run([](auto d, auto x) HWY_ATTR { return logarithm(d, x); });
        case FloatFunction::logistic:
            return run([](auto d, auto x) HWY_ATTR { return logistic(d, x); });
        case FloatFunction::tanh:
            return run([](auto d, auto x) HWY_ATTR { return hyperbolic_tangent(d, x); });
        case FloatFunction::elu:
            return run([](auto d, auto x) HWY_ATTR {
                return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), exponential_below_one(d, x), x);
            });
        case FloatFunction::gelu:
            return run_in_double([](auto d, auto x) HWY_ATTR { return gelu(d, x); });
        case FloatFunction::gelu_by_tanh:
            return run_in_double([](auto d, auto x) HWY_ATTR { return gelu_by_tanh(d, x); });
    }
}

/// What std::max_element finds: what is no number is the largest only where it is the first.
template <class D>
HWY_INLINE float largest_of(D d, const float* in, std::size_t length) {
    const std::size_t lanes = hn::Lanes(d);
    auto most = hn::Set(d, in[0]);
    const auto look_at = [&](std::size_t i) HWY_ATTR {
        const auto values = hn::LoadU(d, in + i);
        most = hn::IfThenElse(hn::Gt(values, most), values, most);
    };
    if (length < lanes) return *std::max_element(in, in + length);
    for (std::size_t i = 0; i + lanes <= length; i += lanes) look_at(i);
    look_at(length - lanes);
    return hn::GetLane(hn::MaxOfLanes(d, most));
}

/// The sum of function(in[i]), which are stored, too. What fills no vector is computed with those
/// in front of it once more.
template <class D, class Function>
HWY_INLINE float sum_of(D d, const float* in, std::size_t length, float* out,
                        const Function& function) {
    const std::size_t lanes = hn::Lanes(d);
    auto sums = hn::Zero(d);
    const auto add = [&](auto mask, std::size_t i) HWY_ATTR {
        const auto values = function(hn::LoadU(d, in + i));
        hn::StoreU(values, d, out + i);
        sums = hn::Add(sums, hn::IfThenElseZero(mask, values));
    };
    const auto all = hn::FirstN(d, lanes);
    std::size_t i = 0;
    for (; i + lanes <= length; i += lanes) add(all, i);
    if (i < length && length > lanes) {
        add(hn::Not(hn::FirstN(d, lanes - (length - i))), length - lanes);
    } else if (i < length) {
        alignas(64) float few[hn::MaxLanes(d)] = {};
        std::copy_n(in, length, few);
        const auto values = hn::IfThenElseZero(hn::FirstN(d, length), function(hn::Load(d, few)));
        hn::Store(values, d, few);
        std::copy_n(few, length, out);
        sums = values;
    }
    return hn::GetLane(hn::SumOfLanes(d, sums));
}

}  // namespace

void float_function_run(FloatFunction what, const float* in, float* out, std::size_t count) {
    of_run(what, in, out, count);
}

void float_leaky_relu_run(const float* in, float* out, std::size_t count, float slope) {
    map(in, out, count, [slope](auto d, auto x) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, slope)));
    });
}

void float_clamp_run(const float* in, float* out, std::size_t count, Limits<float> limits) {
    map(in, out, count, [limits](auto d, auto x) HWY_ATTR {
        const auto least = hn::Set(d, limits.min), most = hn::Set(d, limits.max);
        const auto low = hn::IfThenElse(hn::Lt(x, least), least, x);
        return hn::IfThenElse(hn::Gt(low, most), most, low);
    });
}

void float_limit_run(const float* in, float* out, std::size_t count, Limits<float> limits) {
    map(in, out, count, [limits](auto d, auto x) HWY_ATTR {
        const auto least = hn::Set(d, limits.min), most = hn::Set(d, limits.max);
        const auto low = hn::IfThenElse(hn::Gt(x, least), x, least);
        return hn::IfThenElse(hn::Gt(low, most), most, low);
    });
}

void float_softmax_row(const float* in, float* out, std::size_t length, float beta) {
    const hn::ScalableTag<float> d;
    const float largest = largest_of(d, in, length);
    const float sum = sum_of(d, in, length, out, [&](auto values) HWY_ATTR {
        return exponential(d, hn::Mul(hn::Sub(values, hn::Set(d, largest)), hn::Set(d, beta)));
    });
    map(out, out, length,
        [sum](auto tag, auto x) HWY_ATTR { return hn::Div(x, hn::Set(tag, sum)); });
}

void float_log_softmax_row(const float* in, float* out, std::size_t length) {
    const hn::ScalableTag<float> d;
    const float largest = largest_of(d, in, length);
    const float sum = sum_of(d, in, length, out, [&](auto values) HWY_ATTR {
        return exponential(d, hn::Sub(values, hn::Set(d, largest)));
    });
    const hn::CappedTag<float, 1> one;
    const float of_sum = hn::GetLane(logarithm(one, hn::Set(one, sum)));
    map(in, out, length, [largest, of_sum](auto tag, auto x) HWY_ATTR {
        return hn::Sub(hn::Sub(x, hn::Set(tag, largest)), hn::Set(tag, of_sum));
    });
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(float_function_run);
HWY_EXPORT(float_leaky_relu_run);
HWY_EXPORT(float_clamp_run);
HWY_EXPORT(float_limit_run);
HWY_EXPORT(float_softmax_row);
HWY_EXPORT(float_log_softmax_row);

void float_function_fast(FloatFunction what, const float* in, float* out, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(float_function_run)(what, in, out, count);
}

void float_leaky_relu_fast(const float* in, float* out, std::size_t count, float slope) {
    HWY_DYNAMIC_DISPATCH(float_leaky_relu_run)(in, out, count, slope);
}

void float_clamp_fast(const float* in, float* out, std::size_t count, Limits<float> limits) {
    HWY_DYNAMIC_DISPATCH(float_clamp_run)(in, out, count, limits);
}

void float_limit_fast(const float* in, float* out, std::size_t count, Limits<float> limits) {
    HWY_DYNAMIC_DISPATCH(float_limit_run)(in, out, count, limits);
}

void float_softmax_fast(const float* in, float* out, std::size_t length, float beta) {
    HWY_DYNAMIC_DISPATCH(float_softmax_row)(in, out, length, beta);
}

void float_log_softmax_fast(const float* in, float* out, std::size_t length, float /*beta*/) {
    HWY_DYNAMIC_DISPATCH(float_log_softmax_row)(in, out, length);
}

}  // namespace reef::cpu
#endif
