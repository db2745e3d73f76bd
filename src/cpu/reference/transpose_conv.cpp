// TRANSPOSE_CONV: every input pixel adds its products with the whole filter to a window of the
// output.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/worker_pool.h"
#include "cpu/prepare/convolution.h"
#include "cpu/prepare/dot_product.h"

namespace reef::cpu {
namespace {

template <typename T>
class TransposeConvKernel final : public Kernel {
  public:
    /// Integer sums are taken modulo 2^32.
    using Sum = std::conditional_t<std::is_floating_point_v<T>, float, std::uint32_t>;

    explicit TransposeConvKernel(Convolution c) : c_(std::move(c)) {}
    [[nodiscard]] std::string name() const override { return "transpose_conv reference"; }
    [[nodiscard]] std::size_t packed_bytes() const override { return c_.weights.size(); }
    /// Aligned, which the file's bytes need not be.
    void pack() override {
        const Bytes bytes = c_.weights.view();
        weights_.resize(bytes.size() / sizeof(T));
        std::memcpy(weights_.data(), bytes.data(), bytes.size());
        c_.weights = {};
    }

    /// The sums of one batch.
    [[nodiscard]] std::size_t scratch_bytes() const override { return outputs() * sizeof(Sum); }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* sums = reinterpret_cast<Sum*>(frame.scratch.data());
        for (std::int64_t batch = 0; batch < c_.batch; ++batch) {
            const T* in = frame.in<T>(2) + batch * c_.h.out * c_.w.out * c_.depth;
            T* out = frame.out<T>(0) + batch * static_cast<std::int64_t>(outputs());
            const auto rows = static_cast<std::size_t>(c_.h.in);
            frame.pool.parallel_for(rows, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t y = begin; y < end; ++y)
                    output_row(in, static_cast<std::int64_t>(y), sums, out);
            });
        }
        return {};
    }

  private:
    [[nodiscard]] std::size_t outputs() const {
        return static_cast<std::size_t>(c_.h.in * c_.w.in * c_.out_channels);
    }

    /// Tap k of input row i writes output row i * stride - pad + k.
    void output_row(const T* in, std::int64_t y, Sum* sums, T* out) const {
        const std::int64_t length = c_.w.in * c_.out_channels;
        Sum* row = sums + y * length;
        std::fill_n(row, length, Sum{0});
        for (std::int64_t k = 0; k < c_.h.taps; ++k) {
            const std::int64_t from = y + c_.h.pad - k;
            if (from < 0 || from % c_.h.stride != 0 || from / c_.h.stride >= c_.h.out) continue;
            const T* pixels = in + from / c_.h.stride * c_.w.out * c_.depth;
            for (std::int64_t x = 0; x < c_.w.out; ++x) add_pixel(pixels + x * c_.depth, x, k, row);
        }
        for (std::int64_t i = 0; i < length; ++i)
            out[y * length + i] = value(i % c_.out_channels, row[i]);
    }

    void add_pixel(const T* pixel, std::int64_t x, std::int64_t row_tap, Sum* row) const {
        for (std::int64_t l = 0; l < c_.w.taps; ++l) {
            const std::int64_t to = c_.w.first(x) + l;
            if (!c_.w.contains(to)) continue;
            for (std::int64_t o = 0; o < c_.out_channels; ++o)
                row[to * c_.out_channels + o] +=
                    product(pixel, weights_.data() +
                                       ((o * c_.h.taps + row_tap) * c_.w.taps + l) * c_.depth);
        }
    }

    [[nodiscard]] T value(std::int64_t channel, Sum sum) const {
        if constexpr (std::is_floating_point_v<T>) {
            const FloatSums& floats = *c_.floats;
            return std::clamp(sum + floats.bias[static_cast<std::size_t>(channel)],
                              floats.clamp.min, floats.clamp.max);
        } else {
            return requantize<T>(c_, channel, sum);
        }
    }

    [[nodiscard]] Sum product(const T* pixel, const T* weights) const {
        const auto depth = static_cast<std::size_t>(c_.depth);
        if constexpr (std::is_floating_point_v<T>)
            return dot_product(pixel, weights, depth);
        else
            return static_cast<Sum>(
                dot_product(pixel, weights, depth, c_.input_zero, c_.weight_zero));
    }

    Convolution c_;
    std::vector<T> weights_;
};

}  // namespace

std::unique_ptr<Kernel> reference_transpose_conv(Convolution c) {
    if (c.type == ElementType::uint8)
        return std::make_unique<TransposeConvKernel<std::uint8_t>>(std::move(c));
    if (c.type == ElementType::int8)
        return std::make_unique<TransposeConvKernel<std::int8_t>>(std::move(c));
    return std::make_unique<TransposeConvKernel<float>>(std::move(c));
}

}  // namespace reef::cpu
