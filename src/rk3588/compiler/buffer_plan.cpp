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

std::int64_t ConvolutionShape::entries_of(std::int32_t pixels) const {
    constexpr std::int64_t atoms_per_entry = spec::cbuf_entry_bytes / spec::atom_bytes;
    const std::int64_t atoms = padded_channels() / atom;
    const std::int64_t rest = atoms % atoms_per_entry;
    // Three atoms of a pixel take an entry of their own.
    const std::int64_t rest_entries = rest == 3 ? pixels : up(rest * pixels, atoms_per_entry);
    return atoms / atoms_per_entry * pixels + rest_entries;
}

ConvolutionShape ConvolutionShape::part(std::int32_t channel_count) const {
    ConvolutionShape s = *this;
    s.out_channels = channel_count;
    if (depthwise) s.channels = channel_count;
    return s;
}

std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape, std::int32_t rows,
                                      std::int32_t columns) {
    const std::int64_t row = shape.entries_of(columns);
    std::int64_t wanted = up(row * rows, bank_entries);
    // The DMA reads on into the next bank when an image of one column all but fills the last one.
    if (columns == 1 && row * rows * 100 >= wanted * bank_entries * 97) ++wanted;
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

namespace {

/// One side of the image.
struct Side {
    std::int32_t size = 0;  ///< of the input
    std::int32_t stride = 0, reach = 0, padding = 0;
    [[nodiscard]] std::int32_t begin(std::int32_t i) const { return i * stride - padding; }
    [[nodiscard]] Stretch stretch(std::int32_t first, std::int32_t count) const {
        const std::int32_t from = std::max(0, begin(first));
        const std::int32_t to = std::min(size, begin(first + count - 1) + reach);
        return {first, count, from, to - from, std::max(0, -begin(first))};
    }
};

Side side_of_rows(const ConvolutionShape& s) {
    return {s.height, s.window.stride_h, s.window.reach_h(), s.window.top};
}
Side side_of_columns(const ConvolutionShape& s) {
    return {s.width, s.window.stride_w, s.window.reach_w(), s.window.left};
}

/// As many at once as `most` of the input hold. Empty: not even one.
std::vector<Stretch> stretches(const Side& side, const Rows& of, std::int32_t most) {
    std::vector<Stretch> all;
    const std::int32_t end = of.first + of.count;
    for (std::int32_t first = of.first; first < end;) {
        std::int32_t count = 0;
        while (first + count < end && side.stretch(first, count + 1).count_in <= most) ++count;
        if (count == 0) return {};
        all.push_back(side.stretch(first, count));
        first += count;
    }
    return all;
}

/// `count` things in so many shares, the first ones larger by one.
Rows share_of(std::int32_t count, std::int32_t shares, std::int32_t number) {
    const std::int32_t each = count / shares, more = count % shares;
    return {number * each + std::min(number, more), each + (number < more ? 1 : 0)};
}

}  // namespace

std::optional<Tiling> tiling_of(const ConvolutionShape& shape, const Rows& rows) {
    const Side side = side_of_rows(shape), across = side_of_columns(shape);
    const bool whole = rows.count == shape.out_height;
    const std::int32_t rows_in =
        whole ? shape.height : side.stretch(rows.first, rows.count).count_in;
    for (std::int32_t parts = 1; parts <= shape.out_width; ++parts) {
        const std::int32_t columns = (shape.out_width + parts - 1) / parts;
        std::vector<Stretch> all;
        std::int32_t widest = 0;
        for (std::int32_t first = 0; first < shape.out_width; first += columns) {
            all.push_back(across.stretch(first, std::min(columns, shape.out_width - first)));
            widest = std::max(widest, all.back().count_in);
        }
        // The right edge is where the image ends: a single stretch has all its columns.
        if (all.size() == 1) {
            all.front().count_in = shape.width;
            widest = shape.width;
        }
        const auto buffer = buffer_plan(shape, rows_in, widest);
        if (!buffer) return std::nullopt;
        Tiling tiling{*buffer, {}};
        for (const Stretch& down : stretches(side, rows, buffer->rows))
            for (const Stretch& right : all) tiling.tiles.push_back({down, right});
        if (!tiling.tiles.empty()) return tiling;
    }
    return std::nullopt;
}

std::int32_t channels_of_task(const ConvolutionShape& shape) {
    const Rows all{0, shape.out_height};
    if (tiling_of(shape, all)) return shape.out_channels;
    // All channels of a depthwise convolution share the features.
    if (shape.depthwise || shape.out_channels <= atom) return 0;
    return tiling_of(shape.part(atom), all) ? atom : 0;
}

std::vector<Piece> pieces_of(const ConvolutionShape& shape, std::int32_t task_channels, Split split,
                             std::int32_t cores) {
    const auto step = static_cast<std::int32_t>(shape.depthwise ? spec::int8_depthwise_lanes
                                                                : spec::int8_group_kernels);
    const std::int32_t unit = task_channels < shape.out_channels ? task_channels : step;
    const auto units = static_cast<std::int32_t>(up(shape.out_channels, unit));
    std::vector<Piece> pieces;
    for (std::int32_t core = 0; core < cores; ++core) {
        Rows rows{0, shape.out_height}, channels{0, units};
        (split == Split::rows ? rows : channels) =
            share_of(split == Split::rows ? shape.out_height : units, cores, core);
        if (rows.count == 0 || channels.count == 0) return {};
        const std::int32_t end =
            std::min(shape.out_channels, (channels.first + channels.count) * unit);
        for (std::int32_t c = channels.first * unit; c < end; c += task_channels) {
            const std::int32_t count = std::min(task_channels, end - c);
            auto tiling = tiling_of(shape.part(count), rows);
            if (!tiling) return {};
            pieces.push_back({core, c, count, tiling->buffer, std::move(tiling->tiles)});
        }
    }
    return pieces;
}

}  // namespace reef::rk3588::lowering
