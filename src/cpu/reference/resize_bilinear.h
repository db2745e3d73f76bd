// The plain loop of RESIZE_BILINEAR, for any kind of sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/resizing.h"

namespace reef::cpu {

struct ResizeAxis {
    std::int32_t input = 0;
    std::int32_t output = 0;
    bool align_corners = false;
    bool half_pixel_centers = false;
};

struct Resizing {
    ResizeShape shape;
    ResizeAxis y, x;
};

/// Errors: other types, a size that is not constant, heights and widths above
/// 65536.
[[nodiscard]] Result<Resizing> check_resize(const OperatorView& op,
                                            std::initializer_list<ElementType> types);

/// Four pixels become one by `mix(upper_left, upper_right, lower_left, lower_right, row, column)`,
/// a function next to the type of the samples.
template <typename T, typename Sample>
class ResizeKernel final : public Kernel {
  public:
    ResizeKernel(const ResizeShape& shape, std::vector<Sample> rows, std::vector<Sample> columns)
        : shape_(shape), rows_(std::move(rows)), columns_(std::move(columns)) {}

    [[nodiscard]] std::string name() const override { return "resize_bilinear reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto row_count = rows_.size();
        const auto batches = static_cast<std::size_t>(shape_.batches);
        frame.pool.parallel_for(
            batches * row_count, 4, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t i = begin; i < end; ++i)
                    resize_row(frame.in<T>(0), frame.out<T>(0), i / row_count, i % row_count);
            });
        return {};
    }

  private:
    void resize_row(const T* in, T* out, std::size_t batch, std::size_t y) const {
        const auto channels = static_cast<std::size_t>(shape_.channels);
        const auto pixel = [&](std::int32_t row, std::int32_t column) {
            const auto r = batch * static_cast<std::size_t>(shape_.input_height) +
                           static_cast<std::size_t>(row);
            return in + (r * static_cast<std::size_t>(shape_.input_width) +
                         static_cast<std::size_t>(column)) *
                            channels;
        };
        out += (batch * rows_.size() + y) * columns_.size() * channels;
        const Sample& row = rows_[y];
        for (const Sample& column : columns_) {
            const T* upper_left = pixel(row.lower, column.lower);
            const T* upper_right = pixel(row.lower, column.upper);
            const T* lower_left = pixel(row.upper, column.lower);
            const T* lower_right = pixel(row.upper, column.upper);
            for (std::size_t c = 0; c < channels; ++c)
                *out++ =
                    mix(upper_left[c], upper_right[c], lower_left[c], lower_right[c], row, column);
        }
    }

    ResizeShape shape_;
    std::vector<Sample> rows_, columns_;
};

}  // namespace reef::cpu
