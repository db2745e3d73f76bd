// MEAN of uint8, int8 and float32 over any axes.
//
// Quantised: the exact sum, then float32. TFLite also has an integer form for height and width; its
// results are not these, and the recorded ones are. The Edge TPU's mean is taken for its average
// pooling; no compiled MEAN was seen.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"
#include "cpu/quantized.h"
#include "cpu/reducing.h"

namespace reef::cpu {
namespace {

/// 255 * count stays below 2^31.
constexpr std::int64_t most_elements = 1 << 23;

/// Which output element every input element counts towards, axis by axis.
struct Reduction {
    struct Axis {
        std::size_t length = 1;
        std::size_t output_step = 0;  ///< 0 for a reduced axis
    };
    std::vector<Axis> axes;
    std::size_t outputs = 1;
    std::int64_t count = 1;  ///< input elements per output element
};

/// Sums in input order, which decides a float sum's last bits.
template <typename T, typename Sum, typename Finish>
class MeanKernel final : public Kernel {
  public:
    MeanKernel(Reduction reduction, Finish finish)
        : reduction_(std::move(reduction)), finish_(finish) {}

    [[nodiscard]] std::string name() const override { return "mean reference"; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return reduction_.outputs * sizeof(Sum);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        Sum* sums = reinterpret_cast<Sum*>(frame.scratch.data());
        std::fill_n(sums, reduction_.outputs, Sum{0});
        const T* in = frame.in<T>(0);
        accumulate(in, 0, sums);
        for (std::size_t i = 0; i < reduction_.outputs; ++i)
            frame.out<T>(0)[i] = static_cast<T>(finish_(sums[i]));
        return {};
    }

  private:
    void accumulate(const T*& in, std::size_t axis, Sum* sums) const {
        if (axis == reduction_.axes.size()) {
            *sums += *in++;
            return;
        }
        for (std::size_t i = 0; i < reduction_.axes[axis].length; ++i)
            accumulate(in, axis + 1, sums + i * reduction_.axes[axis].output_step);
    }

    Reduction reduction_;
    Finish finish_;
};

struct FloatFinish {
    float count;
    float operator()(float sum) const { return sum / count; }
};

/// AVERAGE_POOL_2D's on the Edge TPU.
struct EdgetpuFinish {
    FloatRequantisation requantise;
    float scale;
    std::int32_t zero_points;  ///< count times the input's
    std::int32_t operator()(std::int32_t sum) const { return requantise(sum - zero_points, scale); }
};

Result<Reduction> check_mean(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto given = REEF_TRY(op.options<model::ReducerOptions>());
    const model::Tensor& input = op.input(0);
    const std::size_t rank = input.shape.size();
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    if (input.element_count() == 0) return fail(Cause::bad_input, "the mean of no elements");
    std::vector<bool> reduced(rank);
    for (const std::int32_t axis : REEF_TRY(constant_int32(op, 1, "the axes")))
        reduced[REEF_TRY(resolve_axis(axis, rank))] = true;
    std::vector<std::int32_t> shape;
    Reduction reduction;
    reduction.axes.resize(rank);
    for (std::size_t i = rank; i-- > 0;) {
        const std::int32_t length = input.shape[i];
        reduction.axes[i].length = static_cast<std::size_t>(length);
        if (reduced[i]) {
            reduction.count *= length;
            if (given.keep_dims) shape.push_back(1);
        } else {
            reduction.axes[i].output_step = reduction.outputs;
            reduction.outputs *= static_cast<std::size_t>(length);
            shape.push_back(length);
        }
    }
    std::ranges::reverse(shape);
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    return reduction;
}

/// The reduced axes as one, when they lie side by side.
std::optional<MeanShape> side_by_side(const Reduction& reduction) {
    MeanShape shape;
    std::size_t i = 0;
    const auto take = [&](bool kept, std::size_t& product) {
        for (; i < reduction.axes.size(); ++i) {
            const Reduction::Axis& axis = reduction.axes[i];
            if (axis.length != 1 && (axis.output_step != 0) != kept) return;
            product *= axis.length;
        }
    };
    take(true, shape.outer);
    take(false, shape.reduced);
    take(true, shape.inner);
    if (i < reduction.axes.size()) return std::nullopt;
    return shape;
}

/// Rows and columns of a picture, and nothing else, are reduced.
bool is_average_pooling(const Reduction& reduction) {
    if (reduction.axes.size() != 4) return false;
    const auto kept = [&](std::size_t axis) {
        return reduction.axes[axis].length == 1 || reduction.axes[axis].output_step != 0;
    };
    return kept(0) && kept(3);
}

template <typename T>
PreparedKernel edgetpu_mean(const OperatorView& op, Reduction reduction) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (!is_average_pooling(reduction))
        return unknown_on_edgetpu("the mean over other axes than height and width");
    const float share = 1.0F / static_cast<float>(reduction.count);
    const auto count = static_cast<std::int32_t>(reduction.count);
    const EdgetpuFinish finish{
        REEF_TRY(float_requantisation(model::Activation::none, op.output(0))),
        REEF_TRY(float_scale(in.scale * share, out)), in.zero_point * count};
    return std::make_unique<MeanKernel<T, std::int32_t, EdgetpuFinish>>(std::move(reduction),
                                                                        finish);
}

template <typename T>
PreparedKernel quantized_mean(const OperatorView& op, Reduction reduction,
                              const PrepareOptions& options) {
    if (reduction.count > most_elements)
        return fail(Cause::unsupported, fmt::format("the mean of {} elements, more than {}",
                                                    reduction.count, most_elements));
    if (options.arithmetic == Arithmetic::edgetpu) return edgetpu_mean<T>(op, std::move(reduction));
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float scale = in.scale / out.scale;
    if (!(scale < 0x1p40F))
        return fail(Cause::bad_input, "the output's scale is too small for the input's");
    const QuantizedMean<T> mean{scale, -static_cast<float>(in.zero_point) * scale, out.zero_point,
                                static_cast<float>(reduction.count)};
    if (const auto shape = side_by_side(reduction); shape && options.kernels == KernelSet::fast)
        return fast_mean(*shape, mean);
    return std::make_unique<MeanKernel<T, std::int32_t, QuantizedMean<T>>>(std::move(reduction),
                                                                           mean);
}

}  // namespace

PreparedKernel prepare_mean(const OperatorView& op, const PrepareOptions& options) {
    Reduction reduction = REEF_TRY(check_mean(op));
    if (op.input(0).type == ElementType::uint8)
        return quantized_mean<std::uint8_t>(op, std::move(reduction), options);
    if (op.input(0).type == ElementType::int8)
        return quantized_mean<std::int8_t>(op, std::move(reduction), options);
    const FloatFinish finish{static_cast<float>(reduction.count)};
    return std::make_unique<MeanKernel<float, float, FloatFinish>>(std::move(reduction), finish);
}

}  // namespace reef::cpu
