#include "rk3588/compiler/buffer_plan.h"

#include <algorithm>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::int64_t up(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step;
}
constexpr std::int32_t aligned(std::int32_t value, std::int32_t step) {
    return static_cast<std::int32_t>(up(value, step) * step);
}

constexpr std::int32_t atom = static_cast<std::int32_t>(spec::atom_bytes);
constexpr std::int32_t banks = static_cast<std::int32_t>(spec::cbuf_banks);
constexpr std::int64_t bank_entries = spec::cbuf_bank_bytes / spec::cbuf_entry_bytes;
/// Of weights that do not fit at once, as independent drivers have it.
constexpr std::int32_t streaming_banks = 5;

}  // namespace

std::int32_t ConvolutionShape::padded_channels() const {
    return aligned(channels, atom);
}

std::int32_t ConvolutionShape::kernels() const {
    return depthwise ? 1 : aligned(out_channels, 2);
}

std::int32_t ConvolutionShape::stepped_channels() const {
    const std::int32_t direct =
        aligned(out_channels, static_cast<std::int32_t>(spec::direct_channel_step));
    if (!depthwise) return direct;
    return aligned(direct, static_cast<std::int32_t>(spec::depthwise_channel_step));
}

std::int64_t ConvolutionShape::bytes_per_kernel() const {
    return std::int64_t{window.kernel_h} * window.kernel_w * padded_channels();
}

std::int64_t ConvolutionShape::entries_per_row() const {
    constexpr std::int64_t atoms_per_entry = spec::cbuf_entry_bytes / spec::atom_bytes;
    const std::int64_t atoms = padded_channels() / atom;
    const std::int64_t rest = atoms % atoms_per_entry;
    // Three atoms of a pixel take an entry of their own.
    const std::int64_t rest_entries = rest == 3 ? width : up(rest * width, atoms_per_entry);
    return atoms / atoms_per_entry * width + rest_entries;
}

std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape) {
    const std::int64_t row = shape.entries_per_row();
    const std::int64_t rows = shape.height;
    std::int64_t wanted = up(row * rows, bank_entries);
    // The DMA reads on into the next bank when an image of one column all but fills the last one.
    if (shape.width == 1 && row * rows * 100 >= wanted * bank_entries * 97) ++wanted;
    const std::int64_t bytes =
        shape.bytes_per_kernel() * (shape.depthwise ? 1 : shape.out_channels);
    const std::int64_t weights = up(up(bytes, spec::cbuf_entry_bytes), bank_entries) + 1;
    BufferPlan plan;
    plan.keeps_weights = weights + 1 < banks;
    const std::int64_t group = std::min<std::int64_t>(shape.kernels(), spec::int8_group_kernels) *
                               shape.bytes_per_kernel();
    const std::int64_t least =
        plan.keeps_weights
            ? weights
            : std::max<std::int64_t>(streaming_banks,
                                     up(group, static_cast<std::int64_t>(spec::cbuf_bank_bytes)));
    if (least >= banks) return std::nullopt;
    const std::int64_t available = banks - least;
    plan.data_banks = static_cast<std::int32_t>(std::min(wanted, available));
    plan.weight_banks = banks - plan.data_banks;
    plan.rows =
        static_cast<std::int32_t>(wanted <= available ? rows : bank_entries * available / row);
    return plan;
}

std::vector<RowTile> row_tiles(const ConvolutionShape& shape, const BufferPlan& plan) {
    const auto& w = shape.window;
    const auto begin = [&](std::int32_t row) { return row * w.stride_h - w.top; };
    const auto end = [&](std::int32_t row) {
        return std::min(shape.height, begin(row) + w.reach_h());
    };
    std::vector<RowTile> tiles;
    for (std::int32_t first = 0; first < shape.out_height;) {
        const std::int32_t top = std::max(0, begin(first));
        std::int32_t next = first;
        while (next < shape.out_height && end(next) - top <= plan.rows) ++next;
        if (next == first) return {};
        tiles.push_back(
            {first, next - first, top, end(next - 1) - top, std::max(0, -begin(first))});
        first = next;
    }
    return tiles;
}

std::optional<Tiling> tiling_of(const ConvolutionShape& shape) {
    ConvolutionShape part = shape;
    for (const std::int32_t channels : {shape.out_channels, std::min(shape.out_channels, atom)}) {
        // All channels of a depthwise convolution share the features.
        if (shape.depthwise && channels != shape.out_channels) break;
        part.out_channels = channels;
        const auto buffer = buffer_plan(part);
        if (!buffer) continue;
        auto rows = row_tiles(part, *buffer);
        if (!rows.empty()) return Tiling{channels, *buffer, std::move(rows)};
    }
    return std::nullopt;
}

}  // namespace reef::rk3588::lowering
