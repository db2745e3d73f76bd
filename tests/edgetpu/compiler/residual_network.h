// A sum, or another operator of two tensors, of a wide image that is an output, too: a stretch of
// bands can begin with it alone.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/model/builder.h"

namespace reef::test {

inline model::Model residual_network(model::Op op) {
    constexpr std::int32_t side = 28, few = 4, many = 32;
    model::Builder builder("residual");
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto image = [&](const char* name, std::int32_t channels) {
        return builder.tensor(name, ElementType::uint8, {1, side, side, channels}, numbers);
    };
    const auto convolve = [&](model::TensorIndex in, std::int32_t ins, const char* name,
                              std::int32_t outs, std::int32_t kernel) {
        std::vector<std::uint8_t> weights(static_cast<std::size_t>(outs * kernel * kernel * ins));
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<std::uint8_t>(i * 37 % 251);
        const auto w = builder.constant<std::uint8_t>("weights", ElementType::uint8,
                                                      {outs, kernel, kernel, ins}, weights,
                                                      model::per_tensor(0.004F, 125));
        const auto out = image(name, outs);
        builder.add(
            model::Op::conv_2d, {in, w, model::absent_tensor}, {out},
            model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1});
        return out;
    };
    const auto in = builder.input("in", ElementType::uint8, {1, side, side, few}, numbers);
    const auto a = convolve(in, few, "a", many, 3);
    const auto pair = image("pair", many);
    switch (op) {
        case model::Op::mul:
            builder.add(op, {a, a}, {pair}, model::MulOptions{});
            break;
        case model::Op::add:
            builder.add(op, {a, a}, {pair}, model::AddOptions{});
            break;
        default:
            builder.add(op, {a, a}, {pair});
    }
    builder.output(a);
    builder.output(convolve(pair, many, "out", few, 3));
    return builder.finish().value();
}

}  // namespace reef::test
