#include <fmt/format.h>

#include "reef/edgetpu/params.h"

namespace reef::edgetpu {
namespace {

constexpr std::uint64_t largest_layer = std::uint64_t{1} << 30;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::uint32_t lanes_of(const LayerShape& shape, std::uint32_t least) {
    if (shape.is_diagonal()) return 4;
    if (shape.out_channels > lanes_per_group) return lanes_per_group;
    // Known for one output channel; for two to four it is inferred.
    if (shape.kind != LayerKind::fully_connected && shape.out_channels <= least) return least;
    return static_cast<std::uint32_t>(rounded_up(shape.out_channels, 16));
}

}  // namespace

std::uint64_t LayerShape::weight_count() const {
    const bool one_per_channel = is_diagonal() || kind == LayerKind::widening;
    return taps() * out_channels * (one_per_channel ? 1 : in_channels);
}

std::size_t LayerLayout::weight_offset(std::uint32_t out, std::uint64_t tap,
                                       std::uint32_t in) const {
    const std::size_t group = out / lanes * group_bytes + weights;
    const std::uint32_t lane = out % lanes;
    if (shape.is_diagonal()) {
        // Each result takes the byte of its own channel.
        const std::uint32_t channel = out / (shape.out_channels / shape.in_channels);
        return group + tap * 16 + std::size_t{lane} * 4 + channel % 4;
    }
    const std::size_t blocks = (shape.in_channels + std::size_t{3}) / 4;
    return group + ((tap * blocks + in / 4) * lanes + lane) * 4 + in % 4;
}

Result<LayerLayout> layout_of(const LayerShape& shape, const LayerVectors& vectors,
                              std::uint32_t least_lanes) {
    if (shape.kernel_h == 0 || shape.kernel_w == 0 || shape.in_channels == 0 ||
        shape.out_channels == 0) {
        return fail(Cause::bad_argument, "a layer without weights");
    }
    if ((shape.kind == LayerKind::depthwise && shape.in_channels != shape.out_channels) ||
        (shape.kind == LayerKind::widening && shape.in_channels != 1) ||
        (shape.kind == LayerKind::multiplied && shape.out_channels % shape.in_channels != 0)) {
        return fail(Cause::unsupported,
                    fmt::format("a depthwise layer from {} to {} channels", shape.in_channels,
                                shape.out_channels),
                    {}, "the chip has depth multiplier 1, or one input channel");
    }
    for (const std::uint64_t size :
         {shape.taps(), std::uint64_t{shape.in_channels}, std::uint64_t{shape.out_channels}}) {
        if (size > largest_layer) return fail(Cause::unsupported, "a layer above 1 GiB");
    }
    LayerLayout layout{.shape = shape, .vectors = vectors};
    layout.lanes = lanes_of(shape, least_lanes);
    layout.groups =
        static_cast<std::uint32_t>(rounded_up(shape.out_channels, layout.lanes) / layout.lanes);
    const std::uint64_t row = std::uint64_t{layout.lanes} * 4;
    const std::uint64_t rows_per_tap =
        shape.is_diagonal() ? 1 : rounded_up(shape.in_channels, 4) / 4;
    // taps and rows are at most 2^30 each, a row at most 2^8 bytes.
    if (shape.taps() * rows_per_tap > largest_layer ||
        shape.taps() * rows_per_tap * row > largest_layer / layout.groups) {
        return fail(Cause::unsupported, "a layer above 1 GiB");
    }
    std::size_t offset = 0;
    const auto vector_at = [&](bool present, std::size_t& place) {
        place = offset;
        if (present) offset += row;
    };
    vector_at(vectors.multipliers, layout.multipliers);
    vector_at(vectors.biases, layout.biases);
    vector_at(vectors.zero_points, layout.zero_points);
    layout.weights = offset;
    layout.group_bytes = offset + shape.taps() * rows_per_tap * row;
    layout.size_bytes = layout.group_bytes * layout.groups;
    return layout;
}

}  // namespace reef::edgetpu
