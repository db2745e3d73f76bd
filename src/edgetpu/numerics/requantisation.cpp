#include "edgetpu/numerics/requantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "edgetpu/numerics/refusals.h"

namespace reef::edgetpu::numerics {

Result<FloatRequantisation> float_requantisation(model::Activation activation,
                                                 const model::Tensor& output) {
    REEF_CHECK(cpu::expect_type(output, "output 0", {ElementType::uint8, ElementType::int8}));
    const bool rectifies =
        activation == model::Activation::relu || activation == model::Activation::relu6;
    if (!rectifies && activation != model::Activation::none)
        return unknown_on_edgetpu("a fused activation other than RELU and RELU6");
    const AffineParameters p = REEF_TRY(cpu::per_tensor_parameters(output));
    const cpu::ClampRange range = cpu::type_range(output.type);
    float min = p.scale * static_cast<float>(range.min - p.zero_point);
    float max = p.scale * static_cast<float>(range.max - p.zero_point);
    if (rectifies) min = std::max(min, 0.0F);
    if (activation == model::Activation::relu6) max = std::min(max, 6.0F);
    const float inverse = 1.0F / p.scale;
    min *= inverse;
    max *= inverse;
    if (!std::isfinite(min) || !std::isfinite(max))
        return fail(Cause::bad_input,
                    fmt::format("the output's scale {} has no float32 reciprocal", p.scale));
    return FloatRequantisation{min, max, p.zero_point, range};
}

Result<float> float_scale(float factor, AffineParameters output) {
    const float scale = factor * (1.0F / output.scale);
    if (!std::isfinite(scale) || scale <= 0)
        return fail(Cause::bad_input, fmt::format("a rescaling factor of {}", scale));
    return scale;
}

}  // namespace reef::edgetpu::numerics
