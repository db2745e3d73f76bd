// MEAN of uint8, int8 and float32 over any axes.
//
// Quantised: the exact sum, then float32. TFLite also has an integer form for height and width; its
// results are not these, and the recorded ones are.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

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
        for (std::size_t i = 0; i < reduction_.outputs; ++i) frame.out<T>(0)[i] = finish_(sums[i]);
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

template <typename T>
PreparedKernel quantized_mean(const OperatorView& op, Reduction reduction, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (reduction.count > most_elements)
        return fail(Cause::unsupported, fmt::format("the mean of {} elements, more than {}",
                                                    reduction.count, most_elements));
    const float scale = in.scale / out.scale;
    if (!(scale < 0x1p40F))
        return fail(Cause::bad_input, "the output's scale is too small for the input's");
    const QuantizedMean<T> mean{scale, -static_cast<float>(in.zero_point) * scale, out.zero_point,
                                static_cast<float>(reduction.count)};
    if (const auto shape = side_by_side(reduction); shape && set == KernelSet::fast)
        return fast_mean(*shape, mean);
    return std::make_unique<MeanKernel<T, std::int32_t, QuantizedMean<T>>>(std::move(reduction),
                                                                           mean);
}

}  // namespace

PreparedKernel prepare_mean(const OperatorView& op, const PrepareOptions& options) {
    Reduction reduction = REEF_TRY(check_mean(op));
    if (op.input(0).type == ElementType::uint8)
        return quantized_mean<std::uint8_t>(op, std::move(reduction), options.kernels);
    if (op.input(0).type == ElementType::int8)
        return quantized_mean<std::int8_t>(op, std::move(reduction), options.kernels);
    const FloatFinish finish{static_cast<float>(reduction.count)};
    return std::make_unique<MeanKernel<float, float, FloatFinish>>(std::move(reduction), finish);
}

}  // namespace reef::cpu
