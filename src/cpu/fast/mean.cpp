#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mean.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/window_sum-inl.h"
#include "cpu/prepare/reducing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

/// sums[i] = sum over r of in[r * inner + i]
void sum_u8(const std::uint8_t* in, std::size_t reduced, std::size_t inner, std::int32_t* sums) {
    window_sum(in, {1, reduced, 0, inner}, sums);
}
void sum_i8(const std::int8_t* in, std::size_t reduced, std::size_t inner, std::int32_t* sums) {
    window_sum(in, {1, reduced, 0, inner}, sums);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(sum_u8);
HWY_EXPORT(sum_i8);

void sum_fast(const std::uint8_t* in, const MeanShape& shape, std::int32_t* sums) {
    HWY_DYNAMIC_DISPATCH(sum_u8)(in, shape.reduced, shape.inner, sums);
}
void sum_fast(const std::int8_t* in, const MeanShape& shape, std::int32_t* sums) {
    HWY_DYNAMIC_DISPATCH(sum_i8)(in, shape.reduced, shape.inner, sums);
}

template <typename T, typename Mean>
class FastMean final : public Kernel {
  public:
    FastMean(const MeanShape& shape, const Mean& mean) : shape_(shape), mean_(mean) {}

    [[nodiscard]] std::string name() const override {
        return "mean fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return shape_.inner * sizeof(std::int32_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* sums = reinterpret_cast<std::int32_t*>(frame.scratch.data());
        for (std::size_t o = 0; o < shape_.outer; ++o) {
            sum_fast(frame.in<T>(0) + o * shape_.reduced * shape_.inner, shape_, sums);
            for (std::size_t i = 0; i < shape_.inner; ++i)
                frame.out<T>(0)[o * shape_.inner + i] = mean_(sums[i]);
        }
        return {};
    }

  private:
    MeanShape shape_;
    Mean mean_;
};

}  // namespace

template <typename T, typename Mean>
std::unique_ptr<Kernel> fast_mean(const MeanShape& shape, const Mean& mean) {
    return std::make_unique<FastMean<T, Mean>>(shape, mean);
}

template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&, const ScaledMean&);
template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&,
                                                         const TruncatedMean<std::uint8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&,
                                                         const FloatMean<std::uint8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const DividedMean<std::int8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const TruncatedMean<std::int8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const FloatMean<std::int8_t>&);

}  // namespace reef::cpu
#endif
