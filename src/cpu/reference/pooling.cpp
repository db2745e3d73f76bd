// AVERAGE_POOL_2D and MAX_POOL_2D over the part of each window that lies inside the input.
//
// Average: sum / count, rounded to nearest with ties away from zero.
#include "cpu/reference/pooling.h"

#include <algorithm>
#include <limits>

#include "cpu/prepare/kernels.h"

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

struct FloatAverage {
    static constexpr const char* name = "average_pool_2d reference";
    float sum = 0;
    float count = 0;
    void add(float value) {
        sum += value;
        ++count;
    }
    [[nodiscard]] float result() const { return sum / count; }
};

struct FloatMaximum {
    static constexpr const char* name = "max_pool_2d reference";
    float largest = std::numeric_limits<float>::lowest();
    void add(float value) { largest = std::max(largest, value); }
    [[nodiscard]] float result() const { return largest; }
};

struct Maximum {
    static constexpr const char* name = "max_pool_2d reference";
    std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    void add(std::int32_t value) { largest = std::max(largest, value); }
    [[nodiscard]] std::int32_t result() const { return largest; }
};

bool is_float(const OperatorView& op) {
    return op.has_input(0) && op.input(0).type == ElementType::float32;
}

}  // namespace

PreparedKernel prepare_average_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    const Pooling pooling = REEF_TRY(is_float(op) ? check_float_pooling(op) : check_pooling(op));
    if (options.kernels == KernelSet::fast)
        return fast_average_pool_2d(pooling, op.input(0).type, options.threads);
    if (is_float(op))
        return std::make_unique<PoolingKernel<float, FloatAverage>>(pooling, FloatAverage{});
    return reference_pooling(pooling, op.input(0).type, Average{});
}

PreparedKernel prepare_max_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    const Pooling pooling = REEF_TRY(is_float(op) ? check_float_pooling(op) : check_pooling(op));
    if (options.kernels == KernelSet::fast)
        return fast_max_pool_2d(pooling, op.input(0).type, options.threads);
    if (is_float(op))
        return std::make_unique<PoolingKernel<float, FloatMaximum>>(pooling, FloatMaximum{});
    return reference_pooling(pooling, op.input(0).type, Maximum{});
}

}  // namespace reef::cpu
