#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_mean.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>

#include "base/worker_pool.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/prepare/reducing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Means of kVectors vectors of neighbours, whose sums are taken in input order: several of them,
/// because each waits for the one before it.
template <std::size_t kVectors, class D>
HWY_INLINE void float_mean_vectors(D d, const float* HWY_RESTRICT in, const MeanShape& shape,
                                   float* HWY_RESTRICT out) {
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<D> sums[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
    for (std::size_t r = 0; r < shape.reduced; ++r, in += shape.inner)
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            hn::Add(sums[v], hn::LoadU(d, in + v * lanes));
    const auto count = hn::Set(d, static_cast<float>(shape.reduced));
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(hn::Div(sums[v], count), d, out + v * lanes);
}

/// Output blocks [begin, end).
void float_mean_blocks(const float* in, const MeanShape& shape, std::size_t begin, std::size_t end,
                       float* out) {
    const std::size_t blocks = shape.blocks();
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t outer = i / blocks;
        const std::size_t first = i % blocks * MeanShape::block_channels;
        const std::size_t channels = std::min(MeanShape::block_channels, shape.inner - first);
        const float* from = in + outer * shape.reduced * shape.inner + first;
        float* to = out + outer * shape.inner + first;
        each_channel_vectors<float, 4>(channels, [&](auto d, std::size_t c, auto vectors) HWY_ATTR {
            float_mean_vectors<vectors()>(d, from + c, shape, to + c);
        });
    }
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(float_mean_blocks);

class FastFloatMean final : public Kernel {
  public:
    explicit FastFloatMean(const MeanShape& shape) : shape_(shape) {}

    [[nodiscard]] std::string name() const override {
        return "mean fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t block =
            shape_.reduced * std::min(MeanShape::block_channels, shape_.inner) * sizeof(float);
        frame.pool.parallel_for(shape_.outer * shape_.blocks(), grain_of(block, pooled_bytes),
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    HWY_DYNAMIC_DISPATCH(float_mean_blocks)
                                    (frame.in<float>(0), shape_, begin, end, frame.out<float>(0));
                                });
        return {};
    }

  private:
    MeanShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> fast_float_mean(const MeanShape& shape) {
    return std::make_unique<FastFloatMean>(shape);
}

}  // namespace reef::cpu
#endif
