// MEAN over the dimensions of a tensor, shared by its plain and its vectorised form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "cpu/kernel.h"

namespace reef::cpu {

/// From a sum to the quantised mean, in float32 and in TFLite's order of operations.
template <typename T>
struct QuantizedMean {
    float scale = 1;  ///< the input's over the output's
    float bias = 0;   ///< - input zero point * scale
    std::int32_t zero_point = 0;
    float count = 1;
    T operator()(std::int32_t sum) const {
        const float mean = static_cast<float>(sum) / count;
        const float steps = std::round(mean * scale + bias) + static_cast<float>(zero_point);
        return static_cast<T>(
            std::clamp<float>(steps, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
};

/// Input outer x reduced x inner, output outer x inner.
struct MeanShape {
    std::size_t outer = 1;
    std::size_t reduced = 1;
    std::size_t inner = 1;
};

/// Vectorised over `inner`.
[[nodiscard]] std::unique_ptr<Kernel> fast_mean(const MeanShape& shape,
                                                const QuantizedMean<std::uint8_t>& mean);
[[nodiscard]] std::unique_ptr<Kernel> fast_mean(const MeanShape& shape,
                                                const QuantizedMean<std::int8_t>& mean);

}  // namespace reef::cpu
