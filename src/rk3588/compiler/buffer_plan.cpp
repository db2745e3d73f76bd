#include "rk3588/compiler/buffer_plan.h"

#include <algorithm>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/layout/convolution_buffer.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::int64_t up(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step;
}
constexpr std::int32_t aligned(std::int32_t value, std::int32_t step) {
    return static_cast<std::int32_t>(up(value, step) * step);
}

constexpr std::int32_t atom = static_cast<std::int32_t>(spec::atom_bytes);
constexpr std::int64_t banks = static_cast<std::int64_t>(spec::cbuf_banks);

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

ConvolutionShape ConvolutionShape::part(std::int32_t channel_count) const {
    ConvolutionShape s = *this;
    s.out_channels = channel_count;
    if (depthwise) s.channels = channel_count;
    return s;
}

std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape, std::int32_t rows,
                                      std::int32_t columns, Weights weights) {
    const auto u = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const BufferedRows features{u(columns), u(shape.padded_channels() / atom)};
    const std::int64_t bytes =
        shape.bytes_per_kernel() * (shape.depthwise ? 1 : shape.out_channels);
    const std::size_t group = u(std::min<std::int64_t>(shape.kernels(), spec::int8_group_kernels) *
                                shape.bytes_per_kernel());
    BufferPlan plan;
    plan.weights = weights;
    const std::size_t spare = weights == Weights::stay ? spec::spare_weight_banks : 0;
    const std::size_t least = plan.keeps_weights() ? banks_of_weights(u(bytes)) + spare
                                                   : banks_of_streamed_weights(group);
    if (least >= u(banks)) return std::nullopt;
    const std::size_t available = u(banks) - least;
    plan.rows = static_cast<std::int32_t>(features.rows_in(available, u(rows)));
    plan.data_banks = static_cast<std::int32_t>(std::min(features.banks_of(u(rows)), available));
    plan.weight_banks = static_cast<std::int32_t>(banks) - plan.data_banks;
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

/// As many at once as `most` of the input hold. Empty: not even one; or windows of padding alone,
/// of which there is nothing to fetch.
std::vector<Stretch> stretches(const Side& side, const Rows& of, std::int32_t most) {
    std::vector<Stretch> all;
    const std::int32_t end = of.first + of.count;
    for (std::int32_t first = of.first; first < end;) {
        std::int32_t count = 0;
        while (first + count < end && side.stretch(first, count + 1).count_in <= most) ++count;
        if (count == 0) return {};
        all.push_back(side.stretch(first, count));
        if (all.back().count_in <= 0) return {};
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

namespace {

/// Some of the columns of all results at a time, so many parts of them.
struct Columns {
    std::vector<Stretch> all;
    std::int32_t widest = 0;  ///< of the input
};
Columns columns_of(const ConvolutionShape& shape, std::int32_t parts) {
    const Side across = side_of_columns(shape);
    const std::int32_t each = (shape.out_width + parts - 1) / parts;
    Columns columns;
    for (std::int32_t first = 0; first < shape.out_width; first += each) {
        columns.all.push_back(across.stretch(first, std::min(each, shape.out_width - first)));
        columns.widest = std::max(columns.widest, columns.all.back().count_in);
    }
    // The right edge is where the image ends: a single stretch has all its columns.
    if (columns.all.size() == 1) columns.widest = columns.all.front().count_in = shape.width;
    return columns;
}

/// Features and weights, bytes.
std::int64_t fetched_by(const ConvolutionShape& shape, const Tiling& tiling) {
    std::int64_t bytes = 0;
    for (const Tile& tile : tiling.tiles)
        bytes += std::int64_t{tile.rows.count_in} * tile.columns.count_in * shape.padded_channels();
    const auto times = static_cast<std::int64_t>(tiling.tiles.size());
    return bytes + shape.weight_bytes() * (tiling.buffer.keeps_weights() ? 1 : times);
}

}  // namespace

std::optional<Tiling> tiling_of(const ConvolutionShape& shape, const Rows& rows) {
    const Side side = side_of_rows(shape);
    const bool whole = rows.count == shape.out_height;
    const std::int32_t rows_in =
        whole ? shape.height : side.stretch(rows.first, rows.count).count_in;
    if (rows_in <= 0) return std::nullopt;
    for (std::int32_t parts = 1; parts <= shape.out_width; ++parts) {
        const Columns columns = columns_of(shape, parts);
        const auto is_padding = [](const Stretch& s) { return s.count_in <= 0; };
        if (std::ranges::any_of(columns.all, is_padding)) continue;
        std::optional<Tiling> best;
        bool fits = false;
        for (const Weights weights : {Weights::stay, Weights::fill, Weights::stream_again}) {
            const auto buffer = buffer_plan(shape, rows_in, columns.widest, weights);
            if (!buffer || (weights == Weights::fill && best)) continue;
            fits = true;
            Tiling tiling{*buffer, {}};
            for (const Stretch& down : stretches(side, rows, buffer->rows))
                for (const Stretch& right : columns.all) tiling.tiles.push_back({down, right});
            if (tiling.tiles.empty()) continue;
            if (!best || fetched_by(shape, tiling) < fetched_by(shape, *best))
                best = std::move(tiling);
        }
        if (best) return best;
        if (!fits) return std::nullopt;
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
