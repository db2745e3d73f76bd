// What a random network is drawn with: numbers, tensors that operators may still read, constants.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "reef/model/builder.h"

namespace reef::test {

/// A tensor of the network so far, height x width x channels.
struct Live {
    model::TensorIndex index = 0;
    std::int32_t h = 0, w = 0, c = 0;
    float scale = 0;
    std::int32_t zero = 0;
    bool read = false;
};

/// The network so far, of int8 or of uint8.
class NetworkDraft {
  public:
    explicit NetworkDraft(unsigned seed) : random_(seed) { is_signed_ = chance(2); }

  protected:
    int draw(int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random_);
    }
    bool chance(int of) { return draw(1, of) == 1; }
    float scale() { return std::uniform_real_distribution<float>(0.01F, 0.2F)(random_); }
    std::int32_t zero() { return draw(0, 255); }
    ElementType type() const { return is_signed_ ? ElementType::int8 : ElementType::uint8; }
    std::vector<std::int32_t> shape(const Live& t) const { return {1, t.h, t.w, t.c}; }
    model::Quantization numbers(const Live& t) const {
        return model::per_tensor(t.scale, t.zero - (is_signed_ ? 128 : 0));
    }
    model::Activation activation() {
        return std::array{model::Activation::none, model::Activation::relu,
                          model::Activation::relu6}[draw(0, 2)];
    }

    Live& any() {
        // Late ones more often.
        const int last = static_cast<int>(live_.size()) - 1;
        return live_[static_cast<std::size_t>(std::max(draw(0, last), draw(0, last)))];
    }

    model::TensorIndex made(Live out) {
        out.index = builder_.tensor(fmt::format("t{}", ++made_), type(), shape(out), numbers(out));
        live_.push_back(out);
        return out.index;
    }
    model::TensorIndex read(Live& t) {
        t.read = true;
        return t.index;
    }

    template <typename T>
    model::TensorIndex constant(ElementType of, std::vector<std::int32_t> dims,
                                const std::vector<T>& data, model::Quantization q = {}) {
        return builder_.constant<T>(fmt::format("c{}", ++constants_), of, std::move(dims),
                                    std::span<const T>(data), std::move(q));
    }

    std::vector<std::uint8_t> weights(std::size_t count) {
        std::vector<std::uint8_t> bytes(count);
        for (auto& b : bytes) b = static_cast<std::uint8_t>(draw(is_signed_ ? 1 : 0, 255) ^ 0x80);
        return bytes;
    }
    /// Of a layer.
    struct Constants {
        model::TensorIndex weights = 0, bias = 0;
        float scale = 0;  ///< of the output, so that it fills its range
    };
    Constants constants_of(const Live& in, const Live& out, int taps, bool by_channel,
                           std::vector<std::int32_t> dims) {
        const int products = taps * (by_channel ? 1 : in.c);
        std::size_t count = 1;
        for (const auto d : dims) count *= static_cast<std::size_t>(d);
        const bool per_channel = is_signed_ && !chance(4) && out.c > 1;
        std::vector<float> scales(per_channel ? static_cast<std::size_t>(out.c) : 1);
        for (float& s : scales) s = std::uniform_real_distribution<float>(0.002F, 0.01F)(random_);
        auto q = per_channel ? model::per_channel(scales, by_channel ? 3 : 0)
                             : model::per_tensor(scales[0], is_signed_ ? 0 : zero());
        std::vector<std::int32_t> bias(static_cast<std::size_t>(out.c));
        for (auto& b : bias) b = draw(-3000, 3000);
        Constants made;
        made.weights = constant(type(), std::move(dims), weights(count), std::move(q));
        made.bias = constant(ElementType::int32, {out.c}, bias);
        made.scale = in.scale * 0.006F * 50.0F * std::sqrt(static_cast<float>(products)) *
                     std::uniform_real_distribution<float>(0.5F, 2.0F)(random_);
        return made;
    }

    void touch(const Live& t) {
        for (Live& l : live_)
            if (l.index == t.index) l.read = true;
    }

    std::mt19937 random_;
    bool is_signed_ = false;
    model::Builder builder_{"random"};
    std::vector<Live> live_;
    int made_ = 0, constants_ = 0;
};

}  // namespace reef::test
