#include "compiler/random_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "compiler/network_draft.h"
#include "reef/model/builder.h"

namespace reef::test {
namespace {

using model::Activation;
using model::Op;
using model::Padding;
using model::TensorIndex;

class Maker : NetworkDraft {
  public:
    using NetworkDraft::NetworkDraft;

    model::Model run() {
        return run({0, draw(5, 44), draw(5, 44), chance(2) ? draw(1, 6) : 4 * draw(1, 12), scale(),
                    zero(), false});
    }
    model::Model run_small() {
        is_small_ = true;
        return run({0, draw(1, 9), draw(1, 9), chance(2) ? draw(20, 150) : 4 * draw(5, 40), scale(),
                    zero(), false});
    }

    model::Model run_large() {
        is_large_ = true;
        return run({0, draw(90, 260), draw(90, 260), chance(2) ? draw(1, 6) : 4 * draw(1, 6),
                    scale(), zero(), false});
    }

  private:
    model::Model run(Live in) {
        in.index = builder_.input("in", type(), shape(in), numbers(in));
        live_.push_back(in);
        const int operators = draw(2, 8);
        for (int tries = 0; made_ < operators && tries < 100; ++tries) add_one();
        for (const Live& t : live_)
            if (!t.read && t.index != in.index) builder_.output(t.index);
        auto model = builder_.finish();
        return std::move(model).value();
    }

    void add_one() {
        static constexpr void (Maker::*of_small_images[])() = {
            &Maker::convolution, &Maker::convolution, &Maker::convolution, &Maker::depthwise,
            &Maker::depthwise,   &Maker::mean,        &Maker::dense,       &Maker::dense,
            &Maker::sum,         &Maker::softmax};
        if (is_small_ && !chance(5))
            return (this->*of_small_images[draw(0, std::size(of_small_images) - 1)])();
        static constexpr void (Maker::*of_large_images[])() = {
            &Maker::convolution, &Maker::convolution, &Maker::depthwise, &Maker::depthwise,
            &Maker::sum,         &Maker::sum,         &Maker::product,   &Maker::maximum,
            &Maker::difference,  &Maker::joined,      &Maker::pool,      &Maker::padded,
            &Maker::logistic,    &Maker::slice};
        if (is_large_) return (this->*of_large_images[draw(0, std::size(of_large_images) - 1)])();
        static constexpr void (Maker::*kinds[])() = {
            &Maker::convolution, &Maker::convolution, &Maker::convolution,
            &Maker::depthwise,   &Maker::depthwise,   &Maker::sum,
            &Maker::product,     &Maker::rescale,     &Maker::logistic,
            &Maker::joined,      &Maker::pool,        &Maker::resize,
            &Maker::mean,        &Maker::padded,      &Maker::dense,
            &Maker::split,       &Maker::slice,       &Maker::scaled,
            &Maker::shifted,     &Maker::maximum,     &Maker::grouped,
            &Maker::multiplied,  &Maker::reshaped,    &Maker::transposed,
            &Maker::stacked,     &Maker::softmax,     &Maker::transposed_conv,
            &Maker::blocks,      &Maker::difference,  &Maker::minimum,
            &Maker::tanh,        &Maker::leaky,       &Maker::prelu,
            &Maker::with_image,  &Maker::hard_swish};
        (this->*kinds[draw(0, std::size(kinds) - 1)])();
    }

    static std::int32_t side(std::int32_t in, int reach, int stride, Padding padding) {
        return padding == Padding::same ? (in + stride - 1) / stride : (in - reach) / stride + 1;
    }

    void convolution() { windowed(any(), false); }
    void depthwise() {
        Live& in = any();
        if (in.c > 1) windowed(in, true);
    }
    void grouped() {
        Live& in = any();
        const int groups = draw(2, 4);
        if (in.c % groups == 0) windowed(in, false, groups);
    }
    void multiplied() {
        Live& in = any();
        if (in.c <= 40) windowed(in, true, draw(2, 4));
    }

    /// Into so many groups; of a depthwise one, so many results of each channel.
    void windowed(Live& from, bool by_channel, int groups = 1) {
        const Live in = from;
        const int kh = std::array{1, 3, 3, 5}[draw(0, 3)], kw = chance(8) ? draw(1, 4) : kh;
        const int sh = draw(1, 2), sw = chance(8) ? draw(1, 2) : sh;
        const int dilation = sh == 1 && sw == 1 && chance(4) ? 2 : 1;
        const auto padding = chance(3) ? Padding::valid : Padding::same;
        const int reach_h = (kh - 1) * dilation + 1, reach_w = (kw - 1) * dilation + 1;
        if (padding == Padding::valid && (reach_h > in.h || reach_w > in.w)) return;
        Live out = in;
        out.read = false;
        out.h = side(in.h, reach_h, sh, padding);
        out.w = side(in.w, reach_w, sw, padding);
        if (by_channel)
            out.c = groups * in.c;
        else
            out.c = groups * std::max(1, (chance(4) ? draw(1, 150) : 4 * draw(1, 32)) / groups);
        if (is_small_ && !by_channel && groups == 1) {
            out.c = chance(3) ? draw(60, 300) : chance(6) ? 4 * draw(250, 300) : 64 * draw(1, 6);
            if (kh * kw * in.c * out.c > 500000) return;
        }
        if (is_large_ && !by_channel) out.c = 4 * draw(1, 16);
        if (std::int64_t{out.h} * out.w * out.c > (is_large_ ? 1600000 : 60000)) return;
        const auto layer =
            constants_of(in, out, kh * kw, by_channel,
                         by_channel ? std::vector<std::int32_t>{1, kh, kw, out.c}
                                    : std::vector<std::int32_t>{out.c, kh, kw, in.c / groups});
        from.read = true;
        const auto to = made({0, out.h, out.w, out.c, layer.scale, zero(), false});
        if (by_channel) {
            model::DepthwiseConv2dOptions o{
                padding, sh, sw, dilation, dilation, by_channel ? groups : 1, activation()};
            builder_.add(Op::depthwise_conv_2d, {in.index, layer.weights, layer.bias}, {to}, o);
        } else {
            model::Conv2dOptions o{padding, sh, sw, dilation, dilation, activation(), {}};
            builder_.add(Op::conv_2d, {in.index, layer.weights, layer.bias}, {to}, o);
        }
    }

    void dense() {
        Live& from = any();
        const Live in = from;
        if (in.h * in.w != 1) return;
        Live out{0, 1, 1, chance(2) ? draw(1, 200) : 4 * draw(1, 100), 0, zero(), false};
        const auto layer = constants_of(in, out, 1, false, {out.c, in.c});
        out.scale = layer.scale;
        from.read = true;
        const auto to = made(out);
        builder_.add(Op::fully_connected, {in.index, layer.weights, layer.bias}, {to},
                     model::FullyConnectedOptions{activation(), 0, true, false, {}});
    }

    /// Two live tensors of one shape: the same one at worst.
    std::pair<std::size_t, std::size_t> pair() {
        const std::size_t a = static_cast<std::size_t>(&any() - live_.data());
        std::vector<std::size_t> fits;
        for (std::size_t b = 0; b < live_.size(); ++b)
            if (live_[b].h == live_[a].h && live_[b].w == live_[a].w && live_[b].c == live_[a].c)
                fits.push_back(b);
        return {a, fits[static_cast<std::size_t>(draw(0, static_cast<int>(fits.size()) - 1))]};
    }

    void sum() {
        const auto [a, b] = pair();
        const Live x = live_[a], y = live_[b];
        live_[a].read = live_[b].read = true;
        const auto to = made({0, x.h, x.w, x.c, x.scale + y.scale, zero(), false});
        builder_.add(Op::add, {x.index, y.index}, {to}, model::AddOptions{activation(), true});
    }
    void product() {
        const auto [a, b] = pair();
        const Live x = live_[a], y = live_[b];
        live_[a].read = live_[b].read = true;
        const auto to = made({0, x.h, x.w, x.c, x.scale * y.scale * 90, zero(), false});
        builder_.add(Op::mul, {x.index, y.index}, {to}, model::MulOptions{activation()});
    }

    /// By a constant: one, or one for each channel.
    void scaled() {
        const Live in = any();
        touch(in);
        // One draw a line: compilers evaluate arguments in orders of their own.
        const bool single = chance(3);
        const float size = std::uniform_real_distribution<float>(0.004F, 0.01F)(random_);
        const auto factor = constant_like(in, single, size);
        const auto to = made({0, in.h, in.w, in.c, in.scale * 0.7F, zero(), false});
        builder_.add(Op::mul, in_any_order(in.index, factor), {to},
                     model::MulOptions{activation()});
    }
    void shifted() {
        const Live in = any();
        touch(in);
        const auto constant = constant_like(in, chance(2), in.scale * 0.37F);
        const auto to = made({0, in.h, in.w, in.c, in.scale, zero(), false});
        shift(in.index, constant, to);
    }
    /// Less the constant, or with it.
    void shift(TensorIndex in, TensorIndex constant, TensorIndex to) {
        if (in % 2 == 0)
            builder_.add(Op::sub, {in, constant}, {to}, model::SubOptions{activation(), true});
        else
            builder_.add(Op::add, in_any_order(in, constant), {to},
                         model::AddOptions{activation(), true});
    }
    /// Without a draw, so that what follows stays.
    static std::vector<TensorIndex> in_any_order(TensorIndex in, TensorIndex constant) {
        if (constant % 3 == 0) return {constant, in};
        return {in, constant};
    }
    /// Times a constant of its own for each element, or less one.
    void with_image() {
        const Live in = any();
        if (in.h * in.w * in.c > 3000) return;
        touch(in);
        const bool times = chance(2);
        const auto image = constant_of({1, in.h, in.w, in.c}, times ? 0.007F : in.scale * 0.37F);
        const float scale = times ? in.scale * 0.7F : in.scale;
        const auto to = made({0, in.h, in.w, in.c, scale, zero(), false});
        if (times)
            builder_.add(Op::mul, in_any_order(in.index, image), {to},
                         model::MulOptions{activation()});
        else
            shift(in.index, image, to);
    }
    TensorIndex constant_like(const Live& in, bool single, float scale) {
        return constant_of(single ? std::vector<std::int32_t>{} : std::vector{in.c}, scale);
    }
    TensorIndex constant_of(const std::vector<std::int32_t>& shape, float scale) {
        std::size_t size = 1;
        for (const auto n : shape) size *= static_cast<std::size_t>(n);
        std::vector<std::uint8_t> bytes(size);
        for (auto& b : bytes) b = static_cast<std::uint8_t>(draw(0, 255));
        return constant(type(), shape, bytes,
                        model::per_tensor(scale, zero() - (is_signed_ ? 128 : 0)));
    }

    void difference() {
        const auto [a, b] = pair();
        const Live x = live_[a], y = live_[b];
        live_[a].read = live_[b].read = true;
        const auto to = made({0, x.h, x.w, x.c, x.scale + y.scale, zero(), false});
        builder_.add(Op::sub, {x.index, y.index}, {to}, model::SubOptions{activation(), true});
    }

    void maximum() { extreme(Op::maximum); }
    void minimum() { extreme(Op::minimum); }
    /// Of a tensor and another with its numbers, which are the result's, too.
    void extreme(Op op) {
        const auto [a, b] = pair();
        const Live x = live_[a];
        Live y = live_[b];
        live_[a].read = live_[b].read = true;
        if (y.scale != x.scale || y.zero != x.zero) {
            const auto from = y.index;
            y = x;
            y.read = true;
            y.index = made(y);
            builder_.add(Op::quantize, {from}, {y.index});
        }
        Live out = x;
        out.read = false;
        const auto to = made(out);
        builder_.add(op, {x.index, y.index}, {to});
    }

    void leaky() {
        const Live in = any();
        touch(in);
        const float slope = std::uniform_real_distribution<float>(-0.5F, 1.5F)(random_);
        const auto to = made({0, in.h, in.w, in.c, in.scale * 0.8F, zero(), false});
        builder_.add(Op::leaky_relu, {in.index}, {to}, model::LeakyReluOptions{slope});
    }
    void hard_swish() {
        const Live in = any();
        touch(in);
        const auto to = made({0, in.h, in.w, in.c, in.scale * 0.7F, zero(), false});
        builder_.add(Op::hard_swish, {in.index}, {to});
    }
    void prelu() {
        const Live in = any();
        touch(in);
        const bool single = chance(4);
        const auto slopes = constant_like(in, single, 0.005F);
        const auto to = made({0, in.h, in.w, in.c, in.scale * 0.8F, zero(), false});
        builder_.add(Op::prelu, {in.index, slopes}, {to});
    }
    void tanh() {
        const Live in = any();
        touch(in);
        const auto to = made({0, in.h, in.w, in.c, 1.0F / 128, 128, false});
        builder_.add(Op::tanh, {in.index}, {to});
    }

    void rescale() {
        const Live in = any();
        touch(in);
        const auto to = made({0, in.h, in.w, in.c,
                              in.scale * std::uniform_real_distribution<float>(0.6F, 1.7F)(random_),
                              zero(), false});
        builder_.add(std::array{Op::quantize, Op::relu, Op::relu6}[draw(0, 2)], {in.index}, {to});
    }
    void logistic() {
        const Live in = any();
        touch(in);
        const auto to = made({0, in.h, in.w, in.c, 1.0F / 256, 0, false});
        builder_.add(Op::logistic, {in.index}, {to});
    }

    void joined() {
        const Live in = any();
        std::vector<TensorIndex> parts;
        std::int32_t channels = 0;
        for (Live& t : live_) {
            if (t.h != in.h || t.w != in.w || parts.size() == 3) continue;
            // TFLite's int8 rescales nothing here.
            if (is_signed_ && (t.scale != in.scale || t.zero != in.zero)) continue;
            parts.push_back(read(t));
            channels += t.c;
        }
        const auto to = made({0, in.h, in.w, channels, is_signed_ ? in.scale : in.scale * 1.2F,
                              is_signed_ ? in.zero : zero(), false});
        builder_.add(Op::concatenation, parts, {to},
                     model::ConcatenationOptions{3, Activation::none});
    }

    void pool() {
        const Live in = any();
        const bool most = chance(2);
        const int k = draw(2, 3), s = draw(1, 2);
        const auto padding = most && chance(2) ? Padding::same : Padding::valid;
        if (in.h < k || in.w < k) return;
        touch(in);
        Live out = in;
        out.read = false;
        out.h = side(in.h, k, s, padding);
        out.w = side(in.w, k, s, padding);
        const auto to = made(out);
        builder_.add(most ? Op::max_pool_2d : Op::average_pool_2d, {in.index}, {to},
                     model::Pool2dOptions{padding, s, s, k, k, Activation::none});
    }

    void resize() {
        const Live in = any();
        if (in.h > 24 || in.w > 24 || in.c > 64) return;
        touch(in);
        Live out = in;
        out.read = false;
        out.h *= 2;
        out.w *= 2;
        const auto size =
            constant(ElementType::int32, {2}, std::vector<std::int32_t>{out.h, out.w});
        const auto to = made(out);
        if (chance(2))
            builder_.add(Op::resize_bilinear, {in.index, size}, {to},
                         model::ResizeBilinearOptions{false, true, 0, 0});
        else
            builder_.add(Op::resize_nearest_neighbor, {in.index, size}, {to},
                         model::ResizeNearestNeighborOptions{false, chance(2)});
    }

    void mean() {
        const Live in = any();
        if (in.h * in.w == 1 || in.h * in.w * in.c > 100000) return;
        touch(in);
        const auto axes = constant(ElementType::int32, {2}, std::vector<std::int32_t>{1, 2});
        const bool sum = chance(3);
        const float pixels = static_cast<float>(in.h * in.w);
        const auto to =
            made({0, 1, 1, in.c, sum ? in.scale * pixels / 3 : in.scale, in.zero, false});
        builder_.add(sum ? Op::sum : Op::mean, {in.index, axes}, {to}, model::ReducerOptions{true});
    }

    void split() {
        const Live in = any();
        const int axis = draw(1, 3);
        const std::int32_t size = axis == 1 ? in.h : axis == 2 ? in.w : in.c;
        const int parts = draw(2, 3);
        if (size % parts != 0 || size / parts < 1) return;
        touch(in);
        const auto which = constant(ElementType::int32, {1}, std::vector<std::int32_t>{axis});
        std::vector<TensorIndex> to;
        for (int i = 0; i < parts; ++i) {
            Live out = in;
            out.read = false;
            (axis == 1 ? out.h : axis == 2 ? out.w : out.c) = size / parts;
            to.push_back(made(out));
        }
        builder_.add(Op::split, {which, in.index}, to, model::SplitOptions{parts});
    }

    void slice() {
        const Live in = any();
        const bool strided = chance(2);
        const int sy = strided ? draw(1, 2) : 1, sx = strided ? draw(1, 2) : 1;
        const std::vector<std::int32_t> begin{0, draw(0, (in.h - 1) / 2), draw(0, (in.w - 1) / 2),
                                              4 * draw(0, (in.c - 1) / 8)};
        Live out = in;
        out.read = false;
        out.h = draw(1, in.h - begin[1]);
        out.w = draw(1, in.w - begin[2]);
        out.c = draw(1, in.c - begin[3]);
        const std::vector<std::int32_t> end{1, begin[1] + out.h, begin[2] + out.w,
                                            begin[3] + out.c};
        const std::vector<std::int32_t> size{1, out.h, out.w, out.c};
        touch(in);
        const auto from = constant(ElementType::int32, {4}, begin);
        const auto second = constant(ElementType::int32, {4}, strided ? end : size);
        out.h = (out.h + sy - 1) / sy;
        out.w = (out.w + sx - 1) / sx;
        if (strided) {
            const auto step =
                constant(ElementType::int32, {4}, std::vector<std::int32_t>{1, sy, sx, 1});
            const auto to = made(out);
            builder_.add(Op::strided_slice, {in.index, from, second, step}, {to},
                         model::StridedSliceOptions{});
        } else {
            const auto to = made(out);
            builder_.add(Op::slice, {in.index, from, second}, {to});
        }
    }

    void padded() {
        const Live in = any();
        if (in.h > 40 || in.w > 40) return;
        touch(in);
        Live out = in;
        out.read = false;
        const std::vector<std::int32_t> widths{
            0, 0, draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2), 0, chance(6) ? draw(1, 9) : 0};
        out.h += widths[2] + widths[3];
        out.w += widths[4] + widths[5];
        out.c += widths[7];
        const auto list = constant(ElementType::int32, {4, 2}, widths);
        const auto to = made(out);
        builder_.add(Op::pad, {in.index, list}, {to});
        if (chance(4)) return;
        windowed(live_.back(), chance(3) && out.c > 1);
    }

    void transposed_conv() {
        Live& from = any();
        const Live in = from;
        const int k = draw(1, 4), s = draw(1, 3);
        const auto padding = chance(2) ? Padding::valid : Padding::same;
        Live out = in;
        out.c = draw(1, 24);
        const auto grown = [&](std::int32_t n) {
            return padding == Padding::same ? n * s - draw(0, s - 1)
                                            : (n - 1) * s + k + draw(0, s - 1);
        };
        out.h = grown(in.h);
        out.w = grown(in.w);
        if (std::int64_t{out.h} * out.w * out.c > 30000) return;
        const auto layer = constants_of(in, out, k * k, false, {out.c, k, k, in.c});
        from.read = true;
        const auto size =
            constant(ElementType::int32, {4}, std::vector<std::int32_t>{1, out.h, out.w, out.c});
        const auto to = made({0, out.h, out.w, out.c, layer.scale, zero(), false});
        model::TransposeConvOptions o;
        o.padding = padding;
        o.stride_h = o.stride_w = s;
        builder_.add(Op::transpose_conv, {size, layer.weights, in.index, layer.bias}, {to}, o);
    }
    void blocks() {
        const Live in = any();
        const int side = draw(2, 3);
        Live out = in;
        out.read = false;
        if (chance(2)) {
            if (in.h % side != 0 || in.w % side != 0) return;
            touch(in);
            out.h /= side;
            out.w /= side;
            out.c *= side * side;
            builder_.add(Op::space_to_depth, {in.index}, {made(out)},
                         model::SpaceToDepthOptions{side});
        } else {
            if (in.c % (side * side) != 0) return;
            touch(in);
            out.h *= side;
            out.w *= side;
            out.c /= side * side;
            builder_.add(Op::depth_to_space, {in.index}, {made(out)},
                         model::DepthToSpaceOptions{side});
        }
    }

    /// Of all elements.
    void softmax() {
        Live in = any();
        const std::int32_t all = in.h * in.w * in.c;
        if (all > 3000) return;
        touch(in);
        if (in.h * in.w != 1) {
            const auto from = in.index;
            in = {0, 1, 1, all, in.scale, in.zero, true};
            in.index = made(in);
            const auto flat =
                constant(ElementType::int32, {4}, std::vector<std::int32_t>{1, 1, 1, all});
            builder_.add(Op::reshape, {from, flat}, {in.index}, model::ReshapeOptions{});
        }
        const auto to = made({0, 1, 1, in.c, 1.0F / 256, 0, false});
        builder_.add(Op::softmax, {in.index}, {to}, model::SoftmaxOptions{chance(3) ? 0.7F : 1.0F});
    }

    /// Factors of the elements in another order.
    void reshaped() {
        const Live in = any();
        std::vector<std::int32_t> sides{1, 1, 1};
        std::int32_t left = in.h * in.w * in.c;
        if (left > 6000) return;
        for (std::int32_t factor = 2; left > 1; ++factor)
            for (; left % factor == 0; left /= factor)
                sides[static_cast<std::size_t>(draw(0, 2))] *= factor;
        touch(in);
        Live out = in;
        out.read = false;
        out.h = sides[0];
        out.w = sides[1];
        out.c = sides[2];
        const auto shape_of =
            constant(ElementType::int32, {4}, std::vector<std::int32_t>{1, out.h, out.w, out.c});
        const auto to = made(out);
        builder_.add(Op::reshape, {in.index, shape_of}, {to}, model::ReshapeOptions{});
    }
    void transposed() {
        const Live in = any();
        if (in.h * in.w * in.c > 12000) return;
        std::vector<std::int32_t> order{0, 1, 2, 3};
        std::shuffle(order.begin() + 1, order.end(), random_);
        touch(in);
        const std::array<std::int32_t, 4> sides{1, in.h, in.w, in.c};
        const auto side_of = [&](std::size_t i) {
            return sides[static_cast<std::size_t>(order[i])];
        };
        Live out = in;
        out.read = false;
        out.h = side_of(1);
        out.w = side_of(2);
        out.c = side_of(3);
        const auto list = constant(ElementType::int32, {4}, order);
        const auto to = made(out);
        builder_.add(Op::transpose, {in.index, list}, {to});
    }
    /// The same tensor, and what fits beside it, one below the other or side by side.
    void stacked() {
        const Live in = any();
        const int axis = draw(1, 2);
        std::vector<TensorIndex> parts;
        Live out{0,
                 in.h,
                 in.w,
                 in.c,
                 is_signed_ ? in.scale : in.scale * 1.3F,
                 is_signed_ ? in.zero : zero(),
                 false};
        std::int32_t size = 0;
        for (Live& t : live_) {
            if ((axis == 1 ? t.w != in.w : t.h != in.h) || t.c != in.c || parts.size() == 3)
                continue;
            if (is_signed_ && (t.scale != in.scale || t.zero != in.zero)) continue;
            parts.push_back(read(t));
            size += axis == 1 ? t.h : t.w;
        }
        if (parts.size() == 1) parts.push_back(parts[0]);
        if (parts[0] == parts[1]) size *= 2;
        (axis == 1 ? out.h : out.w) = size;
        if (std::int64_t{out.h} * out.w * out.c > 30000) {
            return;
        }
        builder_.add(Op::concatenation, parts, {made(out)},
                     model::ConcatenationOptions{axis, Activation::none});
    }

    bool is_small_ = false, is_large_ = false;
};

}  // namespace

model::Model random_network(unsigned seed) {
    return Maker(seed).run();
}

model::Model random_network_of_large_images(unsigned seed) {
    return Maker(seed).run_large();
}

model::Model random_network_of_small_images(unsigned seed) {
    return Maker(seed).run_small();
}

}  // namespace reef::test
