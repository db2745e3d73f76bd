// Operators that make a pixel of a window of others.
#include <algorithm>

#include "compiler/graph_reader.h"

namespace reef::compiler {
namespace {

/// Pixels in front of the image; nothing when the output does not have the size that follows.
std::optional<std::int32_t> front_of(Padding padding, std::int32_t in, std::int32_t out,
                                     std::int32_t reach, std::int32_t stride) {
    const std::int64_t covered = std::int64_t{out - 1} * stride + reach;
    if (padding == Padding::valid)
        return covered <= in && covered + stride > in ? std::optional(0) : std::nullopt;
    if (out != (in + stride - 1) / stride) return std::nullopt;
    return static_cast<std::int32_t>(std::max<std::int64_t>(covered - in, 0) / 2);
}

}  // namespace

/// Fills in where the window begins. False when shapes do not agree.
bool place_window(Window& w, Padding padding, const Value& in, const Value& out) {
    for (const auto n :
         {w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w})
        if (n < 1 || n > 4096) return false;
    const auto top = front_of(padding, in.height, out.height, w.reach_h(), w.stride_h);
    const auto left = front_of(padding, in.width, out.width, w.reach_w(), w.stride_w);
    if (!top || !left) return false;
    w.top = *top;
    w.left = *left;
    return true;
}

Read GraphReader::pool(const Operator& op) const {
    const auto o = REEF_TRY(options<model::Pool2dOptions>(op));
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    Window w{o.filter_h, o.filter_w, o.stride_h, o.stride_w};
    if (in.channels != out.channels || !place_window(w, o.padding, in, out)) return disagree();
    if (op.code.builtin == Op::max_pool_2d) return MaxPool{w, o.activation};
    const bool inside = w.top == 0 && w.left == 0 &&
                        (out.height - 1) * w.stride_h + w.kernel_h <= in.height &&
                        (out.width - 1) * w.stride_w + w.kernel_w <= in.width;
    if (!inside) return std::unexpected("windows reach over the border and average fewer pixels");
    return AveragePool{w, false, o.activation};
}

Read GraphReader::mean(const Operator& op) const {
    if (op.inputs.size() != 2) return disagree();
    const bool keeps = REEF_TRY(options<model::ReducerOptions>(op)).keep_dims;
    auto axes = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (!axes || tensor(op.inputs[0]).shape.size() != 4)
        return std::unexpected("its axes are not height and width");
    const bool from_the_front = std::ranges::all_of(*axes, [](auto axis) { return axis >= 0; });
    for (auto& axis : *axes)
        if (axis < 0) axis += 4;
    std::ranges::sort(*axes);
    if (*axes != std::vector<std::int32_t>{1, 2})
        return std::unexpected("its axes are not height and width");
    if (out.pixels() != 1 || out.channels != in.channels ||
        tensor(op.outputs[0]).shape.size() != (keeps ? 4U : 2U))
        return disagree();
    using Rounding = AveragePool::Rounding;
    const bool own_case = from_the_front && keeps;
    const auto rounding = !own_case                       ? Rounding::towards_zero
                          : in.type == ElementType::uint8 ? Rounding::scaled
                                                          : Rounding::half_away_from_zero_point;
    return AveragePool{Window{in.height, in.width}, op.code.builtin == Op::sum, Activation::none,
                       rounding};
}

Read GraphReader::resize(const Operator& op) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (in.channels != out.channels || op.inputs.size() != 2) return disagree();
    const auto size = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    if (!size) return std::unexpected("its size is no constant");
    if (*size != std::vector{out.height, out.width}) return disagree();
    if (op.code.builtin == Op::resize_bilinear) {
        const auto o = REEF_TRY(options<model::ResizeBilinearOptions>(op));
        return Resize{false, o.half_pixel_centers, o.align_corners};
    }
    const auto o = REEF_TRY(options<model::ResizeNearestNeighborOptions>(op));
    return Resize{true, o.half_pixel_centers, o.align_corners};
}

}  // namespace reef::compiler
