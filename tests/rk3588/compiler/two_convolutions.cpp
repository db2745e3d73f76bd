#include "rk3588/compiler/two_convolutions.h"

#include "reef/model/builder.h"

namespace reef::test {

Result<model::Model> two_convolutions(std::int32_t times) {
    const std::int32_t height = 9 * times, width = 11 * times;
    model::Builder b("two convolutions");
    const auto quantised = model::per_tensor(0.05F, 120);
    std::vector<std::uint8_t> first(8 * 9 * 3), second(9 * 8);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::uint8_t>(i * 37);
    for (std::size_t i = 0; i < second.size(); ++i) second[i] = static_cast<std::uint8_t>(i * 91);
    const auto in = b.input("in", ElementType::uint8, {1, height, width, 3}, quantised);
    const auto w1 = b.constant<std::uint8_t>("w1", ElementType::uint8, {8, 3, 3, 3}, first,
                                             model::per_tensor(0.01F, 128));
    const auto middle = b.tensor("middle", ElementType::uint8, {1, height, width, 8}, quantised);
    const auto w2 = b.constant<std::uint8_t>("w2", ElementType::uint8, {1, 3, 3, 8}, second,
                                             model::per_tensor(0.02F, 100));
    const auto out =
        b.tensor("out", ElementType::uint8, {1, (height + 1) / 2, (width + 1) / 2, 8}, quantised);
    b.add(model::Op::conv_2d, {in, w1, model::absent_tensor}, {middle},
          model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1});
    b.add(
        model::Op::depthwise_conv_2d, {middle, w2, model::absent_tensor}, {out},
        model::DepthwiseConv2dOptions{
            .padding = model::Padding::same, .stride_h = 2, .stride_w = 2, .depth_multiplier = 1});
    b.output(out);
    return b.finish();
}

}  // namespace reef::test
