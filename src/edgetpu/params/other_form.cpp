// Forms that a part has in some programs and not in others, which no plain model tells apart.
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
    if (auto other = REEF_TRY(with_zero_bias(part))) return other;
    return in_blocks(part);
}

Result<std::vector<ParameterPart>> own_forms(const ParameterPart& part) {
    if (part.kind != PartKind::layer) return std::vector{part};
    const bool by_channel = part.layout.vectors.zero_points;
    const LayerVectors vectors{.multipliers = part.has_multiplier && by_channel,
                               .biases = true,
                               .zero_points = by_channel};
    std::vector<ParameterPart> forms;
    if (part.form.channels == 0) {
        forms.push_back(REEF_TRY(laid_out(part, part.layout.shape, vectors)));
        return forms;
    }
    for (const std::uint32_t block : {part.form.words(), 1U}) {
        if (!forms.empty() && forms.back().form.block_words == block) break;
        ParameterPart other = part;
        other.form.first_h = other.form.first_w = other.form.row = 0;
        other.form.stored_h = part.form.kernel_h;
        other.form.stored_w = part.form.kernel_w;
        other.form.block_words = block;
        LayerShape shape = stored_shape(other.form);
        shape.kind = LayerKind::fully_connected;  // whose lanes are never fewer than 16
        forms.push_back(REEF_TRY(laid_out(std::move(other), shape, vectors)));
    }
    return forms;
}

}  // namespace reef::edgetpu
