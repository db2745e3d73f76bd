// AVERAGE_POOL_2D and MAX_POOL_2D over the part of each window that lies inside the input.
//
// Average: sum / count, rounded to nearest with ties away from zero. The Edge TPU's average is one
// multiplication of the sum without zero points by scale / count, and its windows are whole.
#include "cpu/pooling.h"

#include <algorithm>
#include <limits>

#include "cpu/float_requantisation.h"
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

struct FloatAverage {
    static constexpr const char* name = Average::name;
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_point = 0;
    std::int32_t sum = 0;
    void add(std::int32_t value) { sum += value - zero_point; }
    [[nodiscard]] std::int32_t result() const { return requantise(sum, scale); }
};

/// Every window starts from a copy of `empty`.
template <typename T, typename Reduction>
class PoolingKernel final : public Kernel {
  public:
    PoolingKernel(const Pooling& pooling, const Reduction& empty) : p_(pooling), empty_(empty) {}

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
        Reduction reduction = empty_;
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
    Reduction empty_;
};

template <typename Reduction>
PreparedKernel reference_pooling(const Pooling& pooling, ElementType type, const Reduction& empty) {
    if (type == ElementType::uint8)
        return std::make_unique<PoolingKernel<std::uint8_t, Reduction>>(pooling, empty);
    return std::make_unique<PoolingKernel<std::int8_t, Reduction>>(pooling, empty);
}

/// No window reaches over the input's edge.
bool windows_are_whole(const PoolingAxis& axis) {
    return axis.window(0).size() == axis.filter &&
           axis.window(axis.output - 1).size() == axis.filter;
}

PreparedKernel edgetpu_average(const OperatorView& op, Pooling pooling) {
    if (!windows_are_whole(pooling.y) || !windows_are_whole(pooling.x))
        return unknown_on_edgetpu("averages of windows that reach over the input's edge");
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float share =
        1.0F / (static_cast<float>(pooling.y.filter) * static_cast<float>(pooling.x.filter));
    FloatAverage average;
    average.requantise = REEF_TRY(float_requantisation(given.activation, op.output(0)));
    average.scale = REEF_TRY(float_scale(in.scale * share, out));
    average.zero_point = in.zero_point;
    pooling.clamp = type_range(op.output(0).type);
    return reference_pooling(pooling, op.input(0).type, average);
}

}  // namespace

PreparedKernel prepare_average_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    const Pooling pooling = REEF_TRY(check_pooling(op));
    if (options.arithmetic == Arithmetic::edgetpu) return edgetpu_average(op, pooling);
    if (options.kernels == KernelSet::fast)
        return fast_average_pool_2d(pooling, op.input(0).type, options.threads);
    return reference_pooling(pooling, op.input(0).type, Average{});
}

PreparedKernel prepare_max_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    const Pooling pooling = REEF_TRY(check_pooling(op));
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    if (options.arithmetic == Arithmetic::edgetpu && given.activation != model::Activation::none)
        return unknown_on_edgetpu("MAX_POOL_2D with a fused activation");
    return reference_pooling(pooling, op.input(0).type, Maximum{});
}

}  // namespace reef::cpu
