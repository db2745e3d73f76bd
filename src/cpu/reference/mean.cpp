// MEAN over any axes.
//
// TFLite 2.9 has seven arithmetics for it, chosen by type, quantisation and the axes as the file
// stores them: [1, 2] and [2, 1] of four kept dimensions are its special case, [-3, -2] is not.
//   8 and 16-bit, special      uint8: ScaledMean, int8 and int16: DividedMean
//   8 and 16-bit, otherwise    TruncatedMean when input and output share scale and zero point,
//                              else FloatMean
//   int32, int64               the sum in 64 bits, its quotient truncated
//   float32                    along the last dimension, stored as a positive number: four lanes
//                              (LanesMean); otherwise in input order
// Bytes agree on all MEAN vectors recorded from it: 36 of int8 and uint8, 18 of int16.
#include <array>
#include <cmath>
#include <optional>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "cpu/prepare/reducing.h"
#include "cpu/reference/reduction.h"

namespace reef::cpu {
namespace {

struct FloatQuotientFinish {
    float count;
    float operator()(float sum) const { return sum / count; }
};

struct IntegerQuotientFinish {
    std::int64_t count;
    std::int64_t operator()(std::uint64_t sum) const {
        return static_cast<std::int64_t>(sum) / count;
    }
};

/// The mean of neighbours, summed as a vector of four floats is: which elements share a lane
/// depends on where the row begins within 16 bytes. Two accumulators take vectors in turn.
class LanesMean final : public Kernel {
  public:
    LanesMean(std::size_t rows, std::size_t length) : rows_(rows), length_(length) {}
    [[nodiscard]] std::string name() const override { return "mean reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const float* in = frame.in<float>(0);
        for (std::size_t row = 0; row < rows_; ++row) {
            const std::size_t first = row * length_;
            frame.out<float>(0)[row] =
                sum(in + first, (lanes - first % lanes) % lanes) / static_cast<float>(length_);
        }
        return {};
    }

  private:
    static constexpr std::size_t lanes = 4;
    using Lanes = std::array<float, lanes>;

    static void add(Lanes& sum, const float* vector) {
        for (std::size_t i = 0; i < lanes; ++i) sum[i] += vector[i];
    }

    /// `border`: elements before the first that begins a vector.
    [[nodiscard]] float sum(const float* x, std::size_t border) const {
        border = std::min(border, length_);
        const std::size_t vectors = (length_ - border) / lanes;
        if (vectors == 0) return plus(x[0], x + 1, length_ - 1);
        const auto vector = [&](std::size_t i) { return x + border + i * lanes; };
        Lanes even{};
        std::copy_n(vector(0), lanes, even.begin());
        if (vectors > 1) {
            Lanes odd{};
            std::copy_n(vector(1), lanes, odd.begin());
            for (std::size_t i = 2; i + 1 < vectors; i += 2) {
                add(even, vector(i));
                add(odd, vector(i + 1));
            }
            add(even, odd.data());
            if (vectors % 2 == 1) add(even, vector(vectors - 1));
        }
        const float whole = plus((even[0] + even[2]) + (even[1] + even[3]), x, border);
        const std::size_t end = border + vectors * lanes;
        return plus(whole, x + end, length_ - end);
    }

    static float plus(float sum, const float* x, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) sum += x[i];
        return sum;
    }

    std::size_t rows_;
    std::size_t length_;
};

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

template <typename T, typename Mean>
PreparedKernel mean_kernel(Reduction reduction, const PrepareOptions& options, const Mean& mean) {
    if constexpr (sizeof(T) == 1) {
        if (const auto shape = side_by_side(reduction); shape && options.kernels == KernelSet::fast)
            return fast_mean<T>(*shape, mean);
    }
    return sum_kernel<T>("mean", std::move(reduction), mean);
}

/// From one quantisation to another. Errors: scales too far apart.
Result<ScaledMean> scaled_mean(AffineParameters in, AffineParameters out, std::int64_t count) {
    float shift = static_cast<float>(in.zero_point) * in.scale / out.scale;
    shift += shift > 0 ? 0.5F : -0.5F;
    if (!(std::abs(shift) < 0x1p30F))
        return fail(Cause::bad_input, "the output's scale is too small for the input's");
    const float scale = in.scale / (static_cast<float>(count) * out.scale);
    return ScaledMean{REEF_TRY(checked_multiplier(static_cast<double>(scale))),
                      out.zero_point - static_cast<std::int32_t>(shift)};
}

/// What rounding a sum's product with a multiplier adds: a shift to the right rounds once more.
double first_rounding(Multiplier multiplier) {
    return multiplier.shift < 0 ? std::ldexp(0.5, multiplier.shift) : 0;
}

double real_factor(Multiplier multiplier) {
    return std::ldexp(multiplier.multiplier, multiplier.shift - 31);
}

/// The integer below x * factor + start + offset, of a negative x - offset.
struct RealMean {
    double factor = 0, start = 0, offset = 0;
};

MeanInFloat in_units(const RealMean& mean, std::int32_t zero_points) {
    constexpr double units = MeanInFloat::one;
    return {.pays = true,
            .zero_points = zero_points,
            .factor = static_cast<float>(mean.factor * units),
            .start = static_cast<float>((mean.start + mean.offset) * units + MeanInFloat::most_off),
            .twice_the_offset = static_cast<std::int32_t>(std::lround(2 * mean.offset * units))};
}

/// The sum of so many bytes is a float32.
constexpr std::size_t most_bytes = 65536;
/// What a byte's range is multiplied to where means in float32 pay, and what they are added to.
constexpr double most_steps = 384, most_bias = 256;

template <typename T>
PreparedKernel special_mean(const OperatorView& op, Reduction reduction,
                            const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if constexpr (std::is_same_v<T, std::uint8_t>) {
        const ScaledMean mean = REEF_TRY(scaled_mean(in, out, reduction.count));
        return mean_kernel<T>(std::move(reduction), options, mean);
    } else {
        const auto count = static_cast<std::int32_t>(reduction.count);
        const double scale = static_cast<double>(in.scale) / static_cast<double>(out.scale);
        const DividedMean<T> mean{
            REEF_TRY(checked_multiplier(scale)),
            static_cast<std::int32_t>(static_cast<std::uint32_t>(count) *
                                      static_cast<std::uint32_t>(in.zero_point)),
            count, out.zero_point};
        return mean_kernel<T>(std::move(reduction), options, mean);
    }
}

template <typename T>
PreparedKernel quantized_mean(const OperatorView& op, Reduction reduction,
                              const PrepareOptions& options) {
    if (reduction.over_height_and_width())
        return special_mean<T>(op, std::move(reduction), options);
    if (REEF_TRY(same_quantization(op.input(0), op.output(0)))) {
        const TruncatedMean<T> mean{static_cast<std::int32_t>(reduction.count)};
        return mean_kernel<T>(std::move(reduction), options, mean);
    }
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float scale = in.scale / out.scale;
    if (!(scale < 0x1p40F))
        return fail(Cause::bad_input, "the output's scale is too small for the input's");
    const FloatMean<T> mean{scale, -static_cast<float>(in.zero_point) * scale, out.zero_point,
                            static_cast<float>(reduction.count)};
    return mean_kernel<T>(std::move(reduction), options, mean);
}

template <typename T>
PreparedKernel integer_mean(Reduction reduction) {
    const IntegerQuotientFinish finish{reduction.count};
    return reduction_kernel<T>("mean", std::move(reduction), std::uint64_t{0},
                               AddElement<std::uint64_t>{}, finish);
}

PreparedKernel float_mean(const OperatorView& op, Reduction reduction,
                          const PrepareOptions& options) {
    const auto rank = static_cast<std::int32_t>(op.input(0).shape.size());
    if (reduction.stored_axes == std::vector{rank - 1})
        return std::make_unique<LanesMean>(reduction.outputs,
                                           static_cast<std::size_t>(reduction.count));
    if (const auto shape = side_by_side(reduction);
        shape && shape->inner > 1 && options.kernels == KernelSet::fast)
        return fast_float_mean(*shape);
    const FloatQuotientFinish finish{static_cast<float>(reduction.count)};
    return reduction_kernel<float>("mean", std::move(reduction), 0.0F, AddElement<float>{}, finish);
}

}  // namespace

MeanInFloat in_float(const ScaledMean& mean, std::size_t count) {
    const double factor = real_factor(mean.multiplier);
    if (count > most_bytes || factor * 255 * static_cast<double>(count) > most_steps ||
        std::abs(mean.bias) > most_bias)
        return {};
    return in_units(
        {.factor = factor, .start = mean.bias + 0.5, .offset = first_rounding(mean.multiplier)}, 0);
}

/// Half the count, without its fraction, is added to the integer next to x times the multiplier,
/// which begins half before itself: the integer below the quotient is that of (x times the
/// multiplier + both halves + first_rounding()) / count.
MeanInFloat in_float(const DividedMean<std::int8_t>& mean, std::size_t count) {
    const double factor = real_factor(mean.multiplier);
    if (count > most_bytes || factor * 255 > most_steps) return {};
    const int half = mean.count / 2;
    const double rounded = (half + 0.5 + first_rounding(mean.multiplier)) / mean.count;
    return in_units(
        {.factor = factor / mean.count, .start = mean.zero_point + 0.5, .offset = rounded - 0.5},
        mean.zero_points);
}

PreparedKernel prepare_mean(const OperatorView& op, const PrepareOptions& options) {
    Reduction reduction = REEF_TRY(
        check_reduction(op, {ElementType::uint8, ElementType::int8, ElementType::int16,
                             ElementType::int32, ElementType::int64, ElementType::float32}));
    switch (op.input(0).type) {
        case ElementType::uint8:
            return quantized_mean<std::uint8_t>(op, std::move(reduction), options);
        case ElementType::int8:
            return quantized_mean<std::int8_t>(op, std::move(reduction), options);
        case ElementType::int16:
            return quantized_mean<std::int16_t>(op, std::move(reduction), options);
        case ElementType::int32:
            return integer_mean<std::int32_t>(std::move(reduction));
        case ElementType::int64:
            return integer_mean<std::int64_t>(std::move(reduction));
        default:
            return float_mean(op, std::move(reduction), options);
    }
}

}  // namespace reef::cpu
