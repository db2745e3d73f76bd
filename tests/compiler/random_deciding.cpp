#include <algorithm>
#include <array>

#include "compiler/network_draft.h"
#include "compiler/random_network.h"
#include "reef/model/builder.h"

namespace reef::test {
namespace {

using model::Activation;
using model::Op;
using model::Padding;

class DecidingMaker : NetworkDraft {
  public:
    using NetworkDraft::NetworkDraft;

    model::Model run() {
        Live in{0, draw(1, 70), draw(1, 70), chance(2) ? 1 : draw(1, 12), scale(), zero(), false};
        if (in.h * in.w * in.c > most_elements) in.c = 1;
        in.index = builder_.input("in", type(), shape(in), numbers(in));
        live_.push_back(in);
        if (chance(3)) convolution(chance(2) ? 3 : 1);
        if (chance(3)) whole_image(live_.back());
        flatten();
        if (chance(2)) softmax();
        const int decisions = draw(1, 5);
        for (int i = 0; i < decisions; ++i) decide();
        if (chance(2)) join();
        for (const Live& t : live_)
            if (!t.read && t.index != in.index) builder_.output(t.index);
        return std::move(builder_.finish()).value();
    }

  private:
    static constexpr std::int32_t most_elements = 6000;

    void convolution(std::int32_t side) {
        Live& from = live_.back();
        const Live in = from;
        Live out{0, in.h, in.w, draw(1, 6), 0, zero(), false};
        if (out.h * out.w * out.c > most_elements) return;
        const auto layer = constants_of(in, out, side * side, false, {out.c, side, side, in.c});
        out.scale = layer.scale;
        from.read = true;
        builder_.add(Op::conv_2d, {in.index, layer.weights, layer.bias}, {made(out)},
                     model::Conv2dOptions{Padding::same, 1, 1, 1, 1, activation(), {}});
    }
    /// A kernel of the image's size.
    void whole_image(Live& from) {
        const Live in = from;
        if (in.h * in.w > 225) return;
        Live out{0, 1, 1, draw(1, 80), 0, zero(), false};
        const auto layer = constants_of(in, out, in.h * in.w, false, {out.c, in.h, in.w, in.c});
        out.scale = layer.scale;
        from.read = true;
        builder_.add(Op::conv_2d, {in.index, layer.weights, layer.bias}, {made(out)},
                     model::Conv2dOptions{Padding::valid, 1, 1, 1, 1, activation(), {}});
    }
    void flatten() {
        const Live in = live_.back();
        if (in.h * in.w == 1) return;
        touch(in);
        const std::int32_t all = in.h * in.w * in.c;
        const auto flat =
            constant(ElementType::int32, {4}, std::vector<std::int32_t>{1, 1, 1, all});
        builder_.add(Op::reshape, {in.index, flat},
                     {made({0, 1, 1, all, in.scale, in.zero, false})}, model::ReshapeOptions{});
    }
    void softmax() {
        const Live in = live_.back();
        touch(in);
        builder_.add(Op::softmax, {in.index}, {made({0, 1, 1, in.c, 1.0F / 256, 0, false})},
                     model::SoftmaxOptions{chance(3) ? 0.7F : 1.0F});
    }
    /// Mostly of the first long row, else of any.
    void decide() {
        Live& from = chance(3) ? any() : *std::ranges::max_element(live_, {}, [](const Live& t) {
            return t.h * t.w == 1 ? t.c : 0;
        });
        const Live in = from;
        if (in.h * in.w != 1) return;
        const std::array units{draw(1, 4), draw(1, 64), 16 * draw(1, 4), draw(60, 150)};
        Live out{0, 1, 1, units[static_cast<std::size_t>(draw(0, 3))], 0, zero(), false};
        const auto layer = constants_of(in, out, 1, false, {out.c, in.c});
        out.scale = layer.scale;
        from.read = true;
        const std::vector inputs = chance(3) ? std::vector{in.index, layer.weights}
                                             : std::vector{in.index, layer.weights, layer.bias};
        builder_.add(Op::fully_connected, inputs, {made(out)},
                     model::FullyConnectedOptions{activation(), 0, true, false, {}});
    }
    void join() {
        std::vector<model::TensorIndex> parts;
        Live out{0,
                 1,
                 1,
                 0,
                 live_.back().scale * (is_signed_ ? 1.0F : 1.3F),
                 is_signed_ ? live_.back().zero : zero(),
                 false};
        for (Live& t : live_) {
            if (t.h * t.w != 1 || t.c > 300 || parts.size() == 4) continue;
            if (is_signed_ && (t.scale != out.scale || t.zero != out.zero)) continue;
            parts.push_back(t.index);
            out.c += t.c;
        }
        if (parts.size() < 2) return;
        for (Live& t : live_) t.read |= std::ranges::count(parts, t.index) != 0;
        builder_.add(Op::concatenation, parts, {made(out)},
                     model::ConcatenationOptions{3, Activation::none});
    }
};

}  // namespace

model::Model random_deciding_network(unsigned seed) {
    return DecidingMaker(seed).run();
}

}  // namespace reef::test
