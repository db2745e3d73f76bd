// The inner loops of the weight codec: rows of plain weights to and from the chip's lane order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::edgetpu {

/// `rows` plain rows of 4 * words bytes, `row_stride` bytes apart, to `words` chip rows of
/// 4 * lanes bytes: out[word][row] = in[row][word] XOR flip, four bytes each. Lanes from `rows` on
/// are left alone.
void transpose_words(const std::uint8_t* in, std::size_t row_stride, std::size_t rows,
                     std::size_t words, std::size_t lanes, std::uint32_t flip, std::uint8_t* out);

/// The same from real weights: each row has its own reciprocal scale (reciprocal_step 0: one for
/// all). `row_stride` in floats. int8 weights are stored with the sign bit flipped.
void quantize_and_transpose(const float* in, std::size_t row_stride, std::size_t rows,
                            std::size_t words, std::size_t lanes, const float* scales,
                            std::size_t scale_step, std::uint8_t* out);

/// What quantize_and_transpose() does to one weight, as int8.
[[nodiscard]] std::int8_t quantized_weight(float weight, float scale);

/// Steps of the scale in a weight, either way.
inline constexpr int largest_weight = 127;
/// Whether quantized_weight() gives less of a number than its rounding: more steps than there are.
[[nodiscard]] bool is_limited(float weight, float scale);

}  // namespace reef::edgetpu
