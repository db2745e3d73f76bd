// RESIZE_NEAREST_NEIGHBOR: every output pixel is a copy of one input pixel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// The input row or column of each output row or column, in TFLite's float32 steps.
std::vector<std::size_t> nearest(std::int32_t input, std::int32_t output,
                                 const model::ResizeNearestNeighborOptions& given) {
    const bool corners = given.align_corners && output > 1;
    const float scale = corners ? static_cast<float>(input - 1) / static_cast<float>(output - 1)
                                : static_cast<float>(input) / static_cast<float>(output);
    const float offset = given.half_pixel_centers ? 0.5F : 0.0F;
    std::vector<std::size_t> from;
    for (std::int32_t i = 0; i < output; ++i) {
        const float at = (static_cast<float>(i) + offset) * scale;
        const float whole = given.align_corners ? std::round(at) : std::floor(at);
        from.push_back(
            static_cast<std::size_t>(std::clamp(static_cast<std::int32_t>(whole), 0, input - 1)));
    }
    return from;
}

class NearestKernel final : public Kernel {
  public:
    NearestKernel(const model::Tensor& input, std::vector<std::size_t> rows,
                  std::vector<std::size_t> columns, std::size_t pixel)
        : batches_(static_cast<std::size_t>(input.shape[0])),
          height_(static_cast<std::size_t>(input.shape[1])),
          width_(static_cast<std::size_t>(input.shape[2])),
          rows_(std::move(rows)),
          columns_(std::move(columns)),
          pixel_(pixel) {}
    [[nodiscard]] std::string name() const override { return "resize_nearest_neighbor reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* out = frame.outputs[0];
        if (pixel_ == 0) return {};
        for (std::size_t batch = 0; batch < batches_; ++batch)
            for (std::size_t i = 0; i < rows_.size(); ++i)
                out = row(frame.inputs[0] + (batch * height_ + rows_[i]) * width_ * pixel_, out,
                          i > 0 && rows_[i] == rows_[i - 1]);
        return {};
    }

  private:
    /// `again`: the row before it came from the same one.
    std::byte* row(const std::byte* in, std::byte* out, bool again) const {
        const std::size_t bytes = columns_.size() * pixel_;
        if (again) {
            std::memcpy(out, out - bytes, bytes);
            return out + bytes;
        }
        for (const std::size_t column : columns_) {
            std::memcpy(out, in + column * pixel_, pixel_);
            out += pixel_;
        }
        return out;
    }

    std::size_t batches_, height_, width_;
    std::vector<std::size_t> rows_, columns_;
    std::size_t pixel_;  ///< bytes
};

}  // namespace

PreparedKernel prepare_resize_nearest_neighbor(const OperatorView& op,
                                               const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto given = REEF_TRY(op.options<model::ResizeNearestNeighborOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    const auto size = REEF_TRY(constant_int32(op, 1, "the size"));
    if (input.shape.size() != 4 || size.size() != 2)
        return fail(Cause::bad_input,
                    fmt::format("input 0 is {} and the size has {} numbers, not 4 dimensions and 2",
                                model::shape_text(input.shape), size.size()));
    constexpr std::int32_t longest = 1 << 16;
    for (const std::int32_t length : {input.shape[1], input.shape[2], size[0], size[1]}) {
        if (length < 1 || length > longest)
            return fail(Cause::unsupported,
                        fmt::format("a height or width of {}, not 1 to {}", length, longest));
    }
    REEF_CHECK(
        expect_shape(op.output(0), "output 0", {input.shape[0], size[0], size[1], input.shape[3]}));
    return std::make_unique<NearestKernel>(
        input, nearest(input.shape[1], size[0], given), nearest(input.shape[2], size[1], given),
        static_cast<std::size_t>(input.shape[3]) * *size_of(input.type));
}

}  // namespace reef::cpu
