#include "edgetpu/params/stored_form.h"

#include <algorithm>
#include <span>
#include <vector>

#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

struct Taps {
    std::uint32_t first = 0, count = 0;
};

struct Axis {
    std::int64_t in, out, kernel, stride, dilation;
};

/// Of one axis, those that some window reads; all when there is none.
Taps read_taps(const Axis& axis, model::Padding padding) {
    const std::int64_t span = (axis.kernel - 1) * axis.dilation + 1;
    const std::int64_t total =
        std::max<std::int64_t>((axis.out - 1) * axis.stride + span - axis.in, 0);
    const std::int64_t before = padding == model::Padding::same ? total / 2 : 0;
    std::int64_t first = axis.kernel, last = -1;
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
        // The windows stand at -before, -before + stride and so on.
        const std::int64_t at = tap * axis.dilation - before;
        const std::int64_t window = at < 0 ? (-at + axis.stride - 1) / axis.stride : 0;
        if (window >= axis.out || at + window * axis.stride >= axis.in) continue;
        first = std::min(first, tap);
        last = tap;
    }
    if (last < first) return {0, static_cast<std::uint32_t>(axis.kernel)};
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first + 1)};
}

/// Of one axis; behind the kernel: none.
std::uint32_t tap_of(std::uint32_t first, std::int32_t step, std::size_t stored) {
    return first + static_cast<std::uint32_t>(step) * static_cast<std::uint32_t>(stored);
}

/// Calls with the index of the first element of each run of input channels, plain and stored, and
/// its length.
template <class Each>
void for_each_run(const StoredForm& form, Each&& each) {
    const std::size_t words = form.words(), taps = std::size_t{form.stored_h} * form.stored_w;
    const std::size_t block = form.block_words == 0 ? words : form.block_words;
    const std::size_t own = form.in_channels / form.groups;
    for (std::uint32_t out = 0; out < form.channels; ++out) {
        const std::size_t first = out / (form.channels / form.groups) * own;
        const std::size_t row = std::size_t{form.stored_channel(out)} * taps * words;
        for (std::size_t tap = 0; tap < taps; ++tap) {
            const std::size_t h = tap_of(form.first_h, form.step_h, tap / form.stored_w);
            const std::size_t w = tap_of(form.first_w, form.step_w, tap % form.stored_w);
            if (h >= form.kernel_h || w >= form.kernel_w) continue;
            const std::size_t place = h * form.kernel_w + w;
            const std::size_t plain =
                form.channels_last
                    ? place * form.channels + out
                    : (std::size_t{out} * form.kernel_h * form.kernel_w + place) * own;
            for (std::size_t in = first; in < first + own;) {
                const std::size_t word = in / 4 / block * block;
                const std::size_t end = std::min(first + own, (word + block) * 4);
                each(plain + in - first, (row + word * taps + tap * block) * 4 + in - word * 4,
                     end - in);
                in = end;
            }
        }
    }
}

/// Nothing when there are more or fewer plain ones than the form has.
template <typename T>
std::vector<T> stored_weights(const ParameterPart& part, std::span<const T> plain, T padding) {
    if (plain.size() != part.weight_count()) return {};
    std::vector<T> all(part.layout.shape.weight_count(), padding);
    for_each_run(part.form, [&](std::size_t from, std::size_t to, std::size_t length) {
        std::ranges::copy(plain.subspan(from, length),
                          all.begin() + static_cast<std::ptrdiff_t>(to));
    });
    return all;
}

/// Nothing when there is not one for each plain channel.
template <typename T>
std::vector<T> stored_channels(const ParameterPart& part, std::span<const T> plain, T padding) {
    if (plain.size() != part.form.channels) return {};
    std::vector<T> all(part.layout.shape.out_channels, padding);
    for (std::uint32_t i = 0; i < part.form.channels; ++i)
        all[part.form.stored_channel(i)] = plain[i];
    return all;
}

/// Padding has the layer's first one.
std::vector<float> stored_multipliers(const ParameterPart& part, std::span<const float> plain) {
    auto all = stored_channels(part, plain, plain.empty() ? 1.0F : plain.front());
    if (all.empty()) return all;
    for (std::uint32_t layer = 1; layer < part.stacked.size(); ++layer)
        std::fill(all.begin() + part.form.stored_channel(layer * part.form.row) + part.form.row,
                  all.begin() + part.form.stored_channel((layer + 1) * part.form.row),
                  plain[std::size_t{layer} * part.form.row]);
    return all;
}

template <typename T>
void take_channels(const ParameterPart& part, const std::vector<T>& stored, std::span<T> plain) {
    for (std::uint32_t i = 0; !stored.empty() && i < plain.size(); ++i)
        plain[i] = stored[part.form.stored_channel(i)];
}

const std::vector<std::int32_t>& shape_of(const model::Subgraph& graph, model::TensorIndex index) {
    return graph.tensors[static_cast<std::size_t>(index)].shape;
}

/// Of the RESHAPE that alone reads the tensor: channels of its rows; 0: there is none.
std::int32_t row_of_reshape(const model::Subgraph& graph, model::TensorIndex tensor) {
    std::int32_t row = 0;
    if (std::ranges::find(graph.outputs, tensor) != graph.outputs.end()) return 0;
    for (const auto& op : graph.operators) {
        if (std::ranges::find(op.inputs, tensor) == op.inputs.end()) continue;
        const bool first = op.code.builtin == model::Op::reshape && row == 0 &&
                           !op.outputs.empty() && op.outputs[0] != model::absent_tensor;
        if (!first || shape_of(graph, op.outputs[0]).empty()) return 0;
        row = shape_of(graph, op.outputs[0]).back();
    }
    return row;
}

}  // namespace

StoredForm stored_form(const model::Subgraph& graph, const model::Operator& op) {
    const auto* options = std::get_if<model::Conv2dOptions>(&op.options);
    if (options == nullptr || op.code.builtin != model::Op::conv_2d || op.outputs.empty() ||
        op.inputs[0] == model::absent_tensor || op.outputs[0] == model::absent_tensor)
        return {};
    const auto &in = shape_of(graph, op.inputs[0]), &out = shape_of(graph, op.outputs[0]),
               &kernel = shape_of(graph, op.inputs[1]);
    if (in.size() != 4 || out.size() != 4 || kernel.size() != 4 || options->stride_h < 1 ||
        options->stride_w < 1)
        return {};
    const Taps h = read_taps({in[1], out[1], kernel[1], options->stride_h, options->dilation_h},
                             options->padding);
    const Taps w = read_taps({in[2], out[2], kernel[2], options->stride_w, options->dilation_w},
                             options->padding);
    StoredForm form{.channels = static_cast<std::uint32_t>(kernel[0]),
                    .in_channels = static_cast<std::uint32_t>(kernel[3]),
                    .kernel_h = static_cast<std::uint32_t>(kernel[1]),
                    .kernel_w = static_cast<std::uint32_t>(kernel[2]),
                    .first_h = h.first,
                    .first_w = w.first,
                    .stored_h = h.count,
                    .stored_w = w.count};
    // layout_of() refuses larger layers as they are.
    constexpr double largest = 0x1p30;
    if (double{4} * kernel[0] * kernel[1] * kernel[2] * form.words() > largest) return {};
    const std::int32_t row = row_of_reshape(graph, op.outputs[0]);
    if (row > 0 && row < kernel[0] && kernel[0] % row == 0 && row % 4 != 0)
        form.row = static_cast<std::uint32_t>(row);
    return form;
}

bool may_be_in_blocks(const StoredForm& form) {
    return form.stored_h * form.stored_w > 1 && form.words() > 1;
}

Result<std::optional<ParameterPart>> in_blocks(const ParameterPart& part) {
    if (part.kind != PartKind::layer || !may_be_in_blocks(part.form)) return std::nullopt;
    ParameterPart other = part;
    const std::uint32_t taps = part.form.stored_h * part.form.stored_w;
    const std::uint32_t block = std::max(1U, std::uint32_t{spec::tap_block_rows} / taps);
    if (block >= part.form.words() || part.form.words() % block != 0) return std::nullopt;
    other.form.block_words = block;
    other.layout =
        REEF_TRY(in_place(layout_of(stored_shape(other.form), part.layout.vectors), part.name));
    other.size_bytes = other.layout.size_bytes;
    return other;
}

LayerShape stored_shape(const StoredForm& form) {
    return {LayerKind::convolution, 1, 1, form.stored_h * form.stored_w * form.words() * 4,
            form.stored_channel(form.channels)};
}

Status encode_stored(const ParameterPart& part, const LayerValues& plain, MutableBytes blob) {
    if (part.form.as_is()) return encode_layer(part.layout, plain, blob);
    LayerValues stored = plain;
    const auto weights =
        stored_weights(part, plain.weights, static_cast<std::byte>(plain.weight_zero_point));
    const auto biases = stored_channels(part, plain.biases, 0);
    const auto multipliers = stored_multipliers(part, plain.multipliers);
    stored.weights = weights;
    stored.biases = biases;
    stored.multipliers = multipliers;
    return encode_layer(part.layout, stored, blob);
}

Status decode_stored(const ParameterPart& part, Bytes blob, const LayerStorage& plain) {
    if (part.form.as_is()) return decode_layer(part.layout, blob, plain);
    const std::uint32_t channels = part.layout.shape.out_channels;
    const auto& vectors = part.layout.vectors;
    std::vector<std::byte> weights(part.layout.shape.weight_count());
    std::vector<std::int32_t> biases(vectors.biases ? channels : 0);
    std::vector<float> multipliers(vectors.multipliers ? channels : 0);
    std::vector<std::int32_t> zero_points(vectors.zero_points ? channels : 0);
    REEF_CHECK(
        decode_layer(part.layout, blob, {plain.type, weights, biases, multipliers, zero_points}));
    for_each_run(part.form, [&](std::size_t to, std::size_t from, std::size_t count) {
        std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(from), count,
                    plain.weights.begin() + static_cast<std::ptrdiff_t>(to));
    });
    take_channels<std::int32_t>(part, biases, plain.biases);
    take_channels<float>(part, multipliers, plain.multipliers);
    take_channels<std::int32_t>(part, zero_points, plain.zero_points);
    return {};
}

}  // namespace reef::edgetpu
