// Forms that a part has in some programs and not in others, which no plain model tells apart.
#include <algorithm>

#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

/// Before weights per channel: most programs leave a bias of zeros out, some keep it.
Result<std::optional<ParameterPart>> with_zero_bias(const ParameterPart& part) {
    if (part.layout.shape.kind != LayerKind::depthwise || part.layout.vectors.biases ||
        part.bias == model::absent_tensor)
        return std::nullopt;
    ParameterPart other = part;
    LayerVectors vectors = part.layout.vectors;
    vectors.biases = true;
    other.layout = REEF_TRY(in_place(layout_of(part.layout.shape, vectors), part.name));
    other.size_bytes = other.layout.size_bytes;
    return other;
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
    if (auto other = REEF_TRY(with_zero_bias(part))) return other;
    return in_blocks(part);
}

}  // namespace reef::edgetpu
