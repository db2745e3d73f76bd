// Forms that a part has in some programs and not in others, which no plain model tells apart.
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

Result<ParameterPart> laid_out(ParameterPart part, const LayerShape& shape,
                               const LayerVectors& vectors, std::uint32_t least_lanes = 4) {
    part.layout = REEF_TRY(in_place(layout_of(shape, vectors, least_lanes), part.name));
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

/// Rows of Reef's compiler, but those of words.
constexpr std::uint32_t own_lanes = 16;

bool is_constant_of_elements(PartKind kind) {
    return kind == PartKind::factor || kind == PartKind::multipliers ||
           kind == PartKind::subtrahend;
}

/// A depthwise layer of one pixel. What is taken off is its biases; factors are its weights, or, of
/// the channels of an image, its multipliers. The weights are 1 where they are not the constant.
Result<std::vector<ParameterPart>> as_layers(const ParameterPart& part) {
    const LayerShape shape{LayerKind::depthwise, 1, 1, part.count, part.count};
    std::vector<ParameterPart> forms;
    if (part.kind == PartKind::multipliers)
        forms.push_back(REEF_TRY(
            laid_out(part, shape, {.multipliers = true, .biases = true, .zero_points = true})));
    ParameterPart other = part;
    if (part.kind != PartKind::subtrahend) other.kind = PartKind::layer;
    forms.push_back(REEF_TRY(laid_out(std::move(other), shape, {.biases = true})));
    return forms;
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

Result<std::vector<ParameterPart>> own_forms(const ParameterPart& part) {
    if (is_constant_of_elements(part.kind)) return as_layers(part);
    if (part.kind != PartKind::layer) return std::vector{part};
    const bool by_channel = part.layout.vectors.zero_points;
    const LayerVectors vectors{.multipliers = part.has_multiplier && by_channel,
                               .biases = true,
                               .zero_points = by_channel};
    std::vector<ParameterPart> forms;
    if (part.form.channels == 0) {
        forms.push_back(REEF_TRY(laid_out(part, part.layout.shape, vectors, own_lanes)));
        return forms;
    }
    for (const std::uint32_t block : {part.form.words(), 1U}) {
        if (!forms.empty() && forms.back().form.block_words == block) break;
        ParameterPart other = part;
        other.form.first_h = other.form.first_w = other.form.row = 0;
        other.form.stored_h = part.form.kernel_h;
        other.form.stored_w = part.form.kernel_w;
        other.form.block_words = block;
        const LayerShape shape = stored_shape(other.form);
        forms.push_back(REEF_TRY(laid_out(std::move(other), shape, vectors, own_lanes)));
    }
    return forms;
}

}  // namespace reef::edgetpu
