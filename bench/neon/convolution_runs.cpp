// One CONV_2D or DEPTHWISE_CONV_2D of int8, run as often as asked for, for a count of what a run
// executes (instruction_count.cpp): the runs' number alone tells two calls of this program apart.
// Writes the vectors it uses and the products of one run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/builder.h"

namespace reef {
namespace {

struct Layer {
    std::string_view name;
    std::int32_t size, taps, in_channels, out_channels;
    bool depthwise = false;

    /// Input channels of a weight's row.
    [[nodiscard]] std::int32_t depth() const { return depthwise ? 1 : in_channels; }
    [[nodiscard]] std::int64_t products() const {
        return std::int64_t{size} * size * taps * taps * depth() * out_channels;
    }
};

constexpr Layer layers[] = {{"1x1", 28, 1, 256, 256},
                            {"3x3", 56, 3, 64, 64},
                            {"depthwise3x3", 28, 3, 256, 256, true},
                            {"depthwise5x5", 28, 5, 256, 256, true}};

std::vector<std::byte> random_bytes(std::size_t count) {
    std::mt19937 random(1);
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

Result<model::Model> model_of(const Layer& layer) {
    model::Builder b("convolution");
    const std::vector<std::int32_t> filter{layer.depthwise ? 1 : layer.out_channels, layer.taps,
                                           layer.taps,
                                           layer.depthwise ? layer.out_channels : layer.depth()};
    const auto channels = static_cast<std::size_t>(layer.out_channels);
    const auto weights =
        random_bytes(static_cast<std::size_t>(layer.products() / layer.size / layer.size));
    const std::vector<std::int32_t> zeros(channels, 0);
    const auto in = b.input("in", ElementType::int8, {1, layer.size, layer.size, layer.in_channels},
                            model::per_tensor(0.02F, 3));
    const auto constant = b.constant_bytes(
        "weights", ElementType::int8, filter, weights,
        model::per_channel(std::vector<float>(channels, 0.01F), layer.depthwise ? 3 : 0));
    const auto bias = b.constant<std::int32_t>(
        "bias", ElementType::int32, {layer.out_channels}, std::span<const std::int32_t>(zeros),
        model::per_channel(std::vector<float>(channels, 0.0002F), 0));
    const auto out =
        b.tensor("out", ElementType::int8, {1, layer.size, layer.size, layer.out_channels},
                 model::per_tensor(0.5F, -4));
    if (layer.depthwise)
        b.add(model::Op::depthwise_conv_2d, {in, constant, bias}, {out},
              model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                            .stride_h = 1,
                                            .stride_w = 1,
                                            .depth_multiplier = 1});
    else
        b.add(model::Op::conv_2d, {in, constant, bias}, {out},
              model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1});
    b.output(out);
    return b.finish();
}

Status run(const Layer& layer, int times) {
    const auto model = REEF_TRY(model_of(layer));
    auto executor =
        REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer()}, .threads = 1}));
    std::ranges::copy(random_bytes(executor.input(0).size()), executor.input(0).begin());
    for (int i = 0; i < times; ++i) REEF_TRY(executor.run());
    fmt::print("{} {}\n", cpu::simd_target(), layer.products());
    return {};
}

}  // namespace
}  // namespace reef

int main(int argc, char** argv) {
    const auto* layer =
        argc == 3 ? std::ranges::find(reef::layers, std::string_view(argv[1]), &reef::Layer::name)
                  : std::end(reef::layers);
    if (layer == std::end(reef::layers)) {
        std::cerr << "usage: reef_convolution_runs 1x1|3x3|depthwise3x3|depthwise5x5 RUNS\n";
        return 2;
    }
    if (const auto status = reef::run(*layer, std::atoi(argv[2])); !status) {
        std::cerr << status.error().message() << "\n";
        return 1;
    }
}
