#include "cpu/reference/float_runs.h"

#include <algorithm>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_runs.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "cpu/fast/channel_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace {

/// Calls vectors(d, i) for [0, count): whole vectors, then single elements.
template <class Vectors>
HWY_INLINE void each_vector(std::size_t count, const Vectors& vectors) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 1> one;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vectors(d, i);
    for (; i < count; ++i) vectors(one, i);
}

/// The two inputs of elements i and those behind it; kStep as in the run.
template <std::size_t kAStep, std::size_t kBStep, class Function>
HWY_INLINE void binary_floats(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                              float* HWY_RESTRICT out, std::size_t count, Limits<float> clamp,
                              const Function& function) {
    each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
        const auto x = kAStep == 0 ? hn::Set(d, *a) : hn::LoadU(d, a + i);
        const auto y = kBStep == 0 ? hn::Set(d, *b) : hn::LoadU(d, b + i);
        hn::StoreU(clamp_floats(d, function(x, y), clamp), d, out + i);
    });
}

template <class Function>
HWY_INLINE void binary_of(const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                          float* out, std::size_t count, Limits<float> clamp,
                          const Function& function) {
    if (a_step == 1 && b_step == 1)
        binary_floats<1, 1>(a, b, out, count, clamp, function);
    else if (a_step == 1)
        binary_floats<1, 0>(a, b, out, count, clamp, function);
    else if (b_step == 1)
        binary_floats<0, 1>(a, b, out, count, clamp, function);
    else
        binary_floats<0, 0>(a, b, out, count, clamp, function);
}

void binary(FloatBinary what, const float* a, std::size_t a_step, const float* b,
            std::size_t b_step, float* out, std::size_t count, Limits<float> clamp) {
    const auto run = [&](const auto& function)
                         HWY_ATTR { binary_of(a, a_step, b, b_step, out, count, clamp, function); };
    switch (what) {
        case FloatBinary::sum:
            return run([](auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
        case FloatBinary::difference:
            return run([](auto x, auto y) HWY_ATTR { return hn::Sub(x, y); });
        case FloatBinary::product:
            return run([](auto x, auto y) HWY_ATTR { return hn::Mul(x, y); });
        case FloatBinary::quotient:
            return run([](auto x, auto y) HWY_ATTR { return hn::Div(x, y); });
    }
}

/// Of what lies beyond these the exponential is 0 and infinite. (It goes by way of an integer,
/// which no number that is infinite, or none, has.)
constexpr float least_exponent = -105, largest_exponent = 89;

/// What is no number stays none.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
    const auto none = hn::IsNaN(x);
    const V inside = hn::Clamp(hn::IfThenElse(none, hn::Zero(d), x), hn::Set(d, least_exponent),
                               hn::Set(d, largest_exponent));
    return hn::IfThenElse(none, x, hn::Exp(d, inside));
}

/// From exp(-|x|), which neither overflows nor loses what is small.
void logistic(const float* HWY_RESTRICT in, float* HWY_RESTRICT out, std::size_t count) {
    each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
        const auto x = hn::LoadU(d, in + i);
        const auto e = exponential(d, hn::Neg(hn::Abs(x)));
        const auto one = hn::Set(d, 1.0F);
        const auto above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
        hn::StoreU(hn::Div(above, hn::Add(one, e)), d, out + i);
    });
}

void square_root(const float* HWY_RESTRICT in, float* HWY_RESTRICT out, std::size_t count) {
    each_vector(count, [&](auto d, std::size_t i)
                           HWY_ATTR { hn::StoreU(hn::Sqrt(hn::LoadU(d, in + i)), d, out + i); });
}

void softmax(const float* HWY_RESTRICT in, float* HWY_RESTRICT out, std::size_t length,
             float beta) {
    const hn::ScalableTag<float> d;
    const std::size_t lanes = hn::Lanes(d);
    const float largest = *std::max_element(in, in + length);
    const auto exponential_of = [&](auto values) HWY_ATTR {
        return exponential(d, hn::Mul(hn::Sub(values, hn::Set(d, largest)), hn::Set(d, beta)));
    };
    auto sums = hn::Zero(d);
    float sum = 0;
    std::size_t i = 0;
    for (; i + lanes <= length; i += lanes) {
        const auto e = exponential_of(hn::LoadU(d, in + i));
        hn::StoreU(e, d, out + i);
        sums = hn::Add(sums, e);
    }
    if (i < length) {
        alignas(64) float rest[hn::MaxLanes(d)] = {};
        std::copy_n(in + i, length - i, rest);
        hn::Store(exponential_of(hn::Load(d, rest)), d, rest);
        for (std::size_t k = 0; i + k < length; ++k) sum += out[i + k] = rest[k];
    }
    sum += hn::GetLane(hn::SumOfLanes(d, sums));
    each_vector(length, [&](auto tag, std::size_t k) HWY_ATTR {
        hn::StoreU(hn::Div(hn::LoadU(tag, out + k), hn::Set(tag, sum)), tag, out + k);
    });
}

}  // namespace

void float_binary_run(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                      std::size_t b_step, float* out, std::size_t count, Limits<float> clamp) {
    binary(what, a, a_step, b, b_step, out, count, clamp);
}
void float_logistic_run(const float* in, float* out, std::size_t count) {
    logistic(in, out, count);
}
void float_sqrt_run(const float* in, float* out, std::size_t count) {
    square_root(in, out, count);
}
void float_softmax_row(const float* in, float* out, std::size_t length, float beta) {
    softmax(in, out, length, beta);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(float_binary_run);
HWY_EXPORT(float_logistic_run);
HWY_EXPORT(float_sqrt_run);
HWY_EXPORT(float_softmax_row);

void float_binary_fast(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                       std::size_t b_step, float* out, std::size_t count, Limits<float> clamp) {
    HWY_DYNAMIC_DISPATCH(float_binary_run)(what, a, a_step, b, b_step, out, count, clamp);
}

void float_logistic_fast(const float* in, float* out, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(float_logistic_run)(in, out, count);
}

void float_sqrt_fast(const float* in, float* out, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(float_sqrt_run)(in, out, count);
}

void float_softmax_fast(const float* in, float* out, std::size_t length, float beta) {
    HWY_DYNAMIC_DISPATCH(float_softmax_row)(in, out, length, beta);
}

}  // namespace reef::cpu
#endif
