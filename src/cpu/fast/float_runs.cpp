#include "cpu/reference/float_runs.h"

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_runs.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/float_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace {

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
        case FloatBinary::largest:
            return run([](auto x, auto y) HWY_ATTR { return hn::IfThenElse(hn::Gt(x, y), x, y); });
        case FloatBinary::smallest:
            return run([](auto x, auto y) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, y), x, y); });
        case FloatBinary::squared_difference:
            return run([](auto x, auto y) HWY_ATTR {
                const auto difference = hn::Sub(x, y);
                return hn::Mul(difference, difference);
            });
    }
}

}  // namespace

void float_binary_run(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                      std::size_t b_step, float* out, std::size_t count, Limits<float> clamp) {
    binary(what, a, a_step, b, b_step, out, count, clamp);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(float_binary_run);

void float_binary_fast(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                       std::size_t b_step, float* out, std::size_t count, Limits<float> clamp) {
    HWY_DYNAMIC_DISPATCH(float_binary_run)(what, a, a_step, b, b_step, out, count, clamp);
}

}  // namespace reef::cpu
#endif
