// Where the bytes of a word come from when values go to other places in the image.
#pragma once

#include <compare>
#include <optional>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {

[[nodiscard]] ElementOrder order_of_reshape(const compiler::Value& out);
/// What such a layer reads, in place of its input.
[[nodiscard]] inline compiler::Value rows_of(const compiler::RowProduct& product,
                                             compiler::Value out) {
    out.channels = product.of.in_channels;
    return out;
}
[[nodiscard]] ElementOrder order_of_transpose(const compiler::Value& in,
                                              const compiler::Transpose& transpose);

[[nodiscard]] constexpr std::int64_t element_at(const ElementOrder& order, std::int32_t y,
                                                std::int32_t x, std::int32_t channel) {
    return order.start + y * order.row + x * order.column + channel * order.channel;
}
/// Of an element in an image whose pixels are whole words.
[[nodiscard]] constexpr std::int32_t byte_of(std::int64_t element, std::int32_t channels) {
    return static_cast<std::int32_t>(element / channels * ((channels + 3) / 4 * 4) +
                                     element % channels);
}

/// Bytes of a word in two loops, relative to the first; or words in two parts.
struct WordBytes {
    std::int32_t inner = 0, outer = 0;
    std::uint32_t inner_count = 1, outer_count = 1;
    /// So many bytes of the word at the first place, and what is behind them of the word `inner`
    /// further.
    std::uint32_t first_part = 0;
    friend auto operator<=>(const WordBytes&, const WordBytes&) = default;
};
/// Nothing when neither reaches them.
[[nodiscard]] std::optional<WordBytes> bytes_of_word(const ElementOrder& order,
                                                     std::int32_t in_channels, std::int64_t first,
                                                     std::int32_t bytes);
[[nodiscard]] bool reaches_every_word(const ElementOrder& order, const compiler::Value& in,
                                      const compiler::Value& out);

}  // namespace reef::edgetpu::lowering
