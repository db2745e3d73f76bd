// AVERAGE_POOL_2D and MAX_POOL_2D over the part of each window that lies inside the input.
//
// Average: sum / count, rounded to nearest with ties away from zero.
#include "cpu/pooling.h"

#include <algorithm>
#include <limits>

#include "cpu/kernels.h"

namespace reef::cpu {
namespace {

struct Average {
    static constexpr const char* name = "average_pool_2d reference";
    std::int32_t sum = 0;
    std::int32_t count = 0;
    void add(std::int32_t value) {
        sum += value;
        ++count;
    }
    [[nodiscard]] std::int32_t result() const {
        return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
    }
};

struct Maximum {
    static constexpr const char* name = "max_pool_2d reference";
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    void add(std::int32_t value) { largest = std::max(largest, value); }
    [[nodiscard]] std::int32_t result() const { return largest; }
};

template <typename T, typename Reduction>
class PoolingKernel final : public Kernel {
  public:
    explicit PoolingKernel(const Pooling& pooling) : p_(pooling) {}

    [[nodiscard]] std::string name() const override { return Reduction::name; }

    [[nodiscard]] Status run(const Frame& frame) override {
        T* out = frame.out<T>(0);
        for (std::int32_t b = 0; b < p_.batches; ++b)
            for (std::int32_t y = 0; y < p_.y.output; ++y)
                for (std::int32_t x = 0; x < p_.x.output; ++x)
                    for (std::int32_t c = 0; c < p_.channels; ++c)
                        *out++ = pool(frame.in<T>(0), b, y, x, c);
        return {};
    }

  private:
    [[nodiscard]] T pool(const T* in, std::int32_t b, std::int32_t out_y, std::int32_t out_x,
                         std::int32_t c) const {
        const Extent rows = p_.y.window(out_y);
        const Extent columns = p_.x.window(out_x);
        Reduction reduction;
        for (std::int32_t y = rows.begin; y < rows.end; ++y) {
            for (std::int32_t x = columns.begin; x < columns.end; ++x) {
                const std::ptrdiff_t pixel =
                    (static_cast<std::ptrdiff_t>(b) * p_.y.input + y) * p_.x.input + x;
                reduction.add(in[pixel * p_.channels + c]);
            }
        }
        return static_cast<T>(std::clamp(reduction.result(), p_.clamp.min, p_.clamp.max));
    }

    Pooling p_;
};

template <typename Reduction>
PreparedKernel reference_pooling(const Pooling& pooling, ElementType type) {
    if (type == ElementType::uint8)
        return std::make_unique<PoolingKernel<std::uint8_t, Reduction>>(pooling);
    return std::make_unique<PoolingKernel<std::int8_t, Reduction>>(pooling);
}

}  // namespace

PreparedKernel prepare_average_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    const Pooling pooling = REEF_TRY(check_pooling(op));
    if (options.kernels == KernelSet::fast)
        return fast_average_pool_2d(pooling, op.input(0).type, options.threads);
    return reference_pooling<Average>(pooling, op.input(0).type);
}

PreparedKernel prepare_max_pool_2d(const OperatorView& op, const PrepareOptions& /*options*/) {
    const Pooling pooling = REEF_TRY(check_pooling(op));
    return reference_pooling<Maximum>(pooling, op.input(0).type);
}

}  // namespace reef::cpu
