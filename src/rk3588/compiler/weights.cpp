#include "rk3588/compiler/weights.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>

#include "reef/rk3588/layout.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588::lowering {
namespace {

/// int8 from uint8.
std::vector<std::byte> as_signed(Bytes bytes) {
    std::vector<std::byte> out(bytes.begin(), bytes.end());
    for (std::byte& b : out) b ^= std::byte{0x80};
    return out;
}

std::size_t filled_up(std::size_t count, std::size_t step) {
    return (count + step - 1) / step * step;
}

}  // namespace

std::vector<WeightSum> weight_sums(const compiler::Convolution& conv) {
    const auto outs = static_cast<std::size_t>(conv.out_channels);
    std::vector<WeightSum> sums(outs);
    const Bytes weights = conv.weights.view();
    assert(weights.size() % outs == 0);
    const auto add = [&](WeightSum& of, std::byte b) {
        const std::int32_t weight = std::to_integer<std::int32_t>(b) - conv.weight_zero;
        of.sum += weight;
        of.magnitude += std::abs(weight);
    };
    if (conv.depthwise) {
        for (std::size_t at = 0; at < weights.size(); at += outs)
            for (std::size_t c = 0; c < outs; ++c) add(sums[c], weights[at + c]);
        return sums;
    }
    const std::size_t each = weights.size() / outs;
    for (std::size_t c = 0; c < outs; ++c) {
        WeightSum of;
        for (const std::byte b : weights.subspan(c * each, each)) add(of, b);
        sums[c] = of;
    }
    return sums;
}

std::vector<std::byte> packed_weights(const ConvolutionShape& shape, Bytes weights,
                                      std::int32_t zero) {
    const auto lane = static_cast<std::byte>(zero);
    const auto size = [](std::int32_t n) { return static_cast<std::size_t>(n); };
    const WeightShape stored{size(shape.kernels()), size(shape.window.kernel_h),
                             size(shape.window.kernel_w), size(shape.padded_channels())};
    std::vector<std::byte> packed(stored.elements());
    if (shape.depthwise)
        pack_int8_depthwise_weights(stored, size(shape.channels), as_signed(weights), lane, packed);
    else
        pack_int8_weights(stored, size(shape.out_channels), size(shape.channels),
                          as_signed(weights), lane, packed);
    return packed;
}

std::vector<std::byte> packed_biases(std::span<const std::int32_t> biases) {
    std::vector<std::byte> out(filled_up(biases.size(), spec::direct_channel_step) *
                               sizeof(std::int32_t));
    std::memcpy(out.data(), biases.data(), biases.size_bytes());
    return out;
}

std::vector<std::byte> packed_operands(std::span<const std::int32_t> biases,
                                       std::span<const std::int16_t> factors,
                                       std::size_t group_bytes) {
    constexpr std::size_t group = spec::operand_group_channels;
    const std::size_t padded = filled_up(biases.size(), spec::direct_channel_step);
    std::vector<std::byte> out(padded / group * group_bytes);
    for (std::size_t c = 0; c < padded; ++c) {
        std::byte* at = out.data() + c / group * group_bytes;
        const std::int32_t bias = c < biases.size() ? biases[c] : 0;
        const std::int16_t factor = c < factors.size() ? factors[c] : std::int16_t{1};
        std::memcpy(at + c % group * sizeof bias, &bias, sizeof bias);
        std::memcpy(at + group_bytes - (group - c % group) * sizeof factor, &factor, sizeof factor);
    }
    return out;
}

std::vector<std::byte> packed_powers(std::span<const std::int16_t> powers) {
    std::vector<std::byte> out(filled_up(powers.size(), spec::operand_group_channels) *
                               sizeof(std::int16_t));
    std::memcpy(out.data(), powers.data(), powers.size_bytes());
    return out;
}

}  // namespace reef::rk3588::lowering
