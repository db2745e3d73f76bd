// The plain loop over windows, for any way to reduce one to a value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "cpu/prepare/pooling.h"

namespace reef::cpu {

/// Every window starts from a copy of `empty`, which add()s its elements and has a result().
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
        if constexpr (std::is_floating_point_v<T>)
            return std::clamp(reduction.result(), p_.float_clamp.min, p_.float_clamp.max);
        else
            return static_cast<T>(std::clamp(reduction.result(), p_.clamp.min, p_.clamp.max));
    }

    Pooling p_;
    Reduction empty_;
};

template <typename Reduction>
[[nodiscard]] PreparedKernel reference_pooling(const Pooling& pooling, ElementType type,
                                               const Reduction& empty) {
    if (type == ElementType::uint8)
        return std::make_unique<PoolingKernel<std::uint8_t, Reduction>>(pooling, empty);
    return std::make_unique<PoolingKernel<std::int8_t, Reduction>>(pooling, empty);
}

}  // namespace reef::cpu
