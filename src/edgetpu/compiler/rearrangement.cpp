#include "edgetpu/compiler/rearrangement.h"

#include <algorithm>

namespace reef::edgetpu::lowering {

ElementOrder order_of_reshape(const compiler::Value& out) {
    return {0, std::int64_t{out.width} * out.channels, out.channels, 1};
}

ElementOrder order_of_transpose(const compiler::Value& in, const compiler::Transpose& transpose) {
    const auto step = [&](std::size_t axis) -> std::int64_t {
        switch (transpose.from[axis]) {
            case compiler::Axis::rows:
                return std::int64_t{in.width} * in.channels;
            case compiler::Axis::columns:
                return in.channels;
            default:
                return 1;
        }
    };
    return {0, step(0), step(1), step(2)};
}

std::optional<WordBytes> bytes_of_word(const ElementOrder& order, std::int32_t in_channels,
                                       std::int64_t first, std::int32_t bytes) {
    std::array<std::int32_t, 4> at{};
    for (std::int32_t i = 0; i < bytes; ++i)
        at[static_cast<std::size_t>(i)] =
            byte_of(first + i * order.channel, in_channels) - byte_of(first, in_channels);
    const auto n = static_cast<std::uint32_t>(bytes);
    if (bytes < 3 || (at[2] == 2 * at[1] && (bytes == 3 || at[3] == 3 * at[1])))
        return WordBytes{at[1], 0, n, 1};
    if (bytes == 4 && at[3] == at[1] + at[2]) return WordBytes{at[1], at[2], 2, 2};
    for (std::uint32_t part = 1; part < n; ++part) {
        const auto lies = [&](std::uint32_t i) {
            return at[i] - static_cast<std::int32_t>(i) ==
                   (i < part ? 0 : at[part] - static_cast<std::int32_t>(part));
        };
        bool all = true;
        for (std::uint32_t i = 0; i < n; ++i) all = all && lies(i);
        if (all) return WordBytes{at[part] - static_cast<std::int32_t>(part), 0, 2, 1, part};
    }
    return std::nullopt;
}

bool reaches_every_word(const ElementOrder& order, const compiler::Value& in,
                        const compiler::Value& out) {
    for (std::int32_t y = 0; y < out.height; ++y)
        for (std::int32_t x = 0; x < out.width; ++x)
            for (std::int32_t c = 0; c < out.channels; c += 4)
                if (!bytes_of_word(order, in.channels, element_at(order, y, x, c),
                                   std::min(4, out.channels - c)))
                    return false;
    return true;
}

}  // namespace reef::edgetpu::lowering
