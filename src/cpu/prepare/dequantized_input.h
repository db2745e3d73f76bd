// A uint8 or float32 input of a custom operator, read as float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// value(i) = (q[i] - zero_point) * scale, or the float itself.
struct DequantizedInput {
    bool is_uint8 = false;
    float scale = 1;
    float zero_point = 0;

    [[nodiscard]] static Result<DequantizedInput> of(const model::Tensor& tensor,
                                                     const char* what) {
        REEF_CHECK(expect_type(tensor, what, {ElementType::uint8, ElementType::float32}));
        if (tensor.type == ElementType::float32) return DequantizedInput{};
        const auto p = REEF_TRY(per_tensor_parameters(tensor));
        return DequantizedInput{true, p.scale, static_cast<float>(p.zero_point)};
    }

    [[nodiscard]] float value(const std::byte* data, std::size_t i) const {
        if (is_uint8)
            return (static_cast<float>(std::to_integer<int>(data[i])) - zero_point) * scale;
        return reinterpret_cast<const float*>(data)[i] * scale;
    }
};

}  // namespace reef::cpu
