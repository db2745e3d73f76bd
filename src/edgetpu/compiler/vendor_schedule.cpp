// What the vendor's schedule is known of, and where it puts what.
#include "edgetpu/compiler/vendor_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace reef::edgetpu::lowering {
namespace {

constexpr std::int32_t row_words = spec::row_bytes / spec::narrow_word_bytes;
/// Rows of wide memory left free beside the rows in front of a group.
constexpr std::int32_t gap_rows = 32;
/// Of one group and the next.
constexpr std::int32_t head_slots = 2;

constexpr std::uint32_t least_units = 256, most_units = 1024;
constexpr std::array<std::int32_t, 3> known_channels = {32, 64, 128};
constexpr std::array<std::int32_t, 2> known_heights = {8, 12};
constexpr std::int32_t least_width = 64, most_width = 192;

bool is_dense(const Tensor& in, const Tensor& out, const compiler::Convolution& conv) {
    const auto n = static_cast<std::uint32_t>(in.channels);
    return in.height == 1 && in.width == 1 && conv.window == Window{} &&
           in.channels == out.channels && n >= least_units && n <= most_units &&
           n % spec::row_bytes == 0;
}

bool is_known_convolution(const Tensor& in, const Tensor& out, const compiler::Convolution& conv) {
    const Window window{.kernel_h = 3, .kernel_w = 3, .top = 1, .left = 1};
    return conv.window == window && in.channels == out.channels && in.height == out.height &&
           in.width == out.width && compiler::holds(known_channels, in.channels) &&
           compiler::holds(known_heights, in.height) && in.width >= least_width &&
           in.width <= most_width && in.width % std::int32_t{grid} == 0;
}

/// Of no operator's place: with one left to the CPU, the network would not be the vendor's either.
std::unexpected<Error> unknown() {
    return fail(
        Cause::unsupported, "the vendor's schedule of this network is not known", {},
        "it is known of networks that are one layer of int8 weights with a scale for each "
        "channel and no bias but 0: FULLY_CONNECTED of 256, 512, 768 or 1024 to as many, CONV_2D "
        "of "
        "3x3 with padding SAME on 8 or 12 rows of 64 to 192 pixels (multiples of 4) and 32, "
        "64 or 128 channels to as many");
}

/// Behind its schedule: the vendor's programs leave biases out where all of them are 0.
void count_rows(ParameterLayer& layer, std::size_t rows) {
    layer.biased = false;
    layer.row_bytes = 4 * layer.schedule.row_lanes;
    layer.bytes = rows * layer.row_bytes;
}

/// A group of 64 units on each tile: two rows in front, then a row for each word of the input.
void place_dense(Plan& plan, Tensor& out, ParameterLayer& layer) {
    const auto n = static_cast<std::uint32_t>(out.channels);
    const std::uint32_t words = n / 4, tiles = n / lanes, rows = front_rows + words;
    layer.schedule.groups = tiles;
    layer.schedule.row_lanes = lanes;
    count_rows(layer, std::size_t{tiles} * rows);
    for (unsigned t = 0; t < tiles; ++t)
        layer.pieces.push_back({t, 0, rows, std::size_t{t} * rows * layer.row_bytes});
    out.layout = Layout::channels;
    out.spread_tiles = tiles;
    out.all_channels = out.channels;
    out.channels = lanes;
    plan.narrow_bytes = 4 * (words + dense_staging_words + lanes / 4);
}

/// All of them lie on tile 0, which sends them to all.
void place_convolution(Plan& plan, const Tensor& out, ParameterLayer& layer) {
    const ConvolutionGeometry g(out.height, out.width, out.channels);
    layer.schedule.groups = g.groups;
    layer.schedule.row_lanes = g.group_lanes;
    layer.schedule.inner = g.inner;
    count_rows(layer, count(g.parameter_rows()));
    layer.pieces.push_back({0, 0, layer.row_count(), 0});
    plan.narrow_bytes = static_cast<std::uint32_t>(g.narrow_bytes());
}

}  // namespace

// The choice of the loops' order is fitted on three of 144 programs that have the other one.
ConvolutionGeometry::ConvolutionGeometry(std::int32_t image_height, std::int32_t image_width,
                                         std::int32_t channels)
    : words(channels / 4),
      height(image_height / std::int32_t{grid}),
      width(image_width / std::int32_t{grid}),
      pitch((width + 2) * words),
      staging((height + 2) * pitch),
      image_row(image_width * words),
      identity(staging + 2 * image_row),
      message_rows((image_row + row_words - 1) / row_words),
      slots(top_row - 2 * message_rows),
      positions(height * width),
      groups(static_cast<std::uint32_t>(channels + 63) / lanes),
      group_lanes(std::min(lanes, static_cast<std::uint32_t>(channels))),
      inner(positions > 4 * static_cast<std::int32_t>(group_lanes)) {
    constexpr std::int32_t taps = 9, fronts = front_rows;
    group_rows = inner ? taps * words : taps;
    sums = inner ? 0 : top_row - positions;
    if (inner) {
        body = top_row - 2 * group_rows;
        head = body - gap_rows - head_slots * fronts;
    } else {
        head = sums - gap_rows - head_slots * fronts;
        body = head - 2 * group_rows;
    }
}

std::int32_t ConvolutionGeometry::narrow_bytes() const {
    return 4 * std::max(identity + 4, staging + output_words());
}

std::int32_t ConvolutionGeometry::parameter_rows() const {
    return static_cast<std::int32_t>(groups) * (static_cast<std::int32_t>(front_rows) + 9 * words);
}

void wait_for_rows(Emitter& code) {
    program::Fence fence;
    fence.tiles = every_tile;
    fence.engines = 1U << spec::value::tile_engine::NARROW_TO_WIDE_;
    code.scalar(fence);
}

void wait_until_idle(Emitter& code) {
    code.fence(0, notification::core_);
    code.wait_for_tiles();
}

Result<Plan> placed_as_vendor(Plan plan) {
    const auto* kind =
        plan.steps.size() == 2 ? std::get_if<ConvolutionStep>(&plan.steps.back().kind) : nullptr;
    if (kind == nullptr || kind->depthwise || kind->phase != Phase{}) return unknown();
    const Tensor& in = plan.tensors[plan.steps.back().in.front()];
    Tensor& out = plan.tensors[plan.steps.back().out];
    ParameterLayer& layer = plan.layers[kind->layer];
    const auto& conv = *layer.source;
    const bool biased = std::ranges::any_of(conv.biases, [](std::int32_t b) { return b != 0; });
    if (!conv.per_channel() || biased) return unknown();
    if (is_dense(in, out, conv)) {
        place_dense(plan, out, layer);
    } else if (is_known_convolution(in, out, conv)) {
        const ConvolutionGeometry g(in.height, in.width, in.channels);
        const auto limit = static_cast<std::int32_t>(
            std::min<std::uint32_t>(plan.most_narrow_bytes, spec::activation_bytes));
        if (g.narrow_bytes() > limit || g.parameter_rows() + 3 > std::min(g.head, g.slots - 1))
            return unknown();
        place_convolution(plan, out, layer);
    } else {
        return unknown();
    }
    for (const auto& piece : layer.pieces) plan.rows_used[piece.tile] = piece.row + piece.count;
    plan.first_scratch_row = spec::parameter_rows;
    return plan;
}

Result<Programs> emit_as_vendor(const Plan& plan, const EmitOptions& options) {
    const bool dense = plan.tensors[plan.steps.back().out].layout == Layout::channels;
    return dense ? emit_dense_as_vendor(plan, options) : emit_convolution_as_vendor(plan, options);
}

}  // namespace reef::edgetpu::lowering
