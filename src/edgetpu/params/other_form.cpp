// Forms that a part has in some programs and not in others, which no plain model tells apart.
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

Result<ParameterPart> laid_out(ParameterPart part, const LayerShape& shape,
                               const LayerVectors& vectors) {
    part.layout = REEF_TRY(in_place(layout_of(shape, vectors), part.name));
    part.size_bytes = part.layout.size_bytes;
    return part;
}

/// Before weights per channel: most programs leave a bias of zeros out, some keep it.
Result<std::optional<ParameterPart>> with_zero_bias(const ParameterPart& part) {
    if (part.layout.shape.kind != LayerKind::depthwise || part.layout.vectors.biases ||
        part.bias == model::absent_tensor)
        return std::nullopt;
    LayerVectors vectors = part.layout.vectors;
    vectors.biases = true;
    return REEF_TRY(laid_out(part, part.layout.shape, vectors));
}

}  // namespace

Result<std::optional<ParameterPart>> other_form(const ParameterPart& part) {
    if (part.kind == PartKind::softmax_table) {
        ParameterPart other = part;
        other.unit_line = !part.unit_line;
        other.size_bytes = softmax_table_size(other.count, other.unit_line);
        return other;
    }
    if (part.kind != PartKind::layer) return std::nullopt;
    if (part.layout.shape.kind == LayerKind::multiplied)
        return fail(Cause::unsupported,
                    fmt::format("a depthwise layer from {} to {} channels",
                                part.layout.shape.in_channels, part.layout.shape.out_channels),
                    part.name,
                    "the vendor's programs have depth multiplier 1, or one input channel");
    if (auto other = REEF_TRY(with_zero_bias(part))) return other;
    return in_blocks(part);
}

}  // namespace reef::edgetpu
