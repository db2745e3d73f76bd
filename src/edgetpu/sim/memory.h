// The memories of a tile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace reef::edgetpu::sim {

// Sizes: what the address fields reach (narrow), and what all known programs stay within (wide:
// 0x000 to 0x7ff hold parameters, 0x800 to 0x81f are scratch). Source: programs, exact as a
// functional model; no data sheet exists.
inline constexpr std::size_t narrow_bytes = 0x40000;
inline constexpr std::size_t narrow_word_bytes = 4;
inline constexpr std::size_t narrow_words = narrow_bytes / narrow_word_bytes;
inline constexpr std::size_t wide_rows = 0x820;
inline constexpr std::size_t row_bytes = 256;
inline constexpr std::size_t row_words = row_bytes / narrow_word_bytes;
inline constexpr std::size_t scaling_words = 128;
inline constexpr std::size_t scaling_word_bytes = 8;
inline constexpr std::size_t parameter_fifo_units = 2048;
inline constexpr std::size_t activation_fifo_units = 32768;
/// Tiles of a row, and rows.
inline constexpr unsigned grid_side = 4;
inline constexpr unsigned tile_count = grid_side * grid_side;
inline constexpr unsigned lane_count = 64;

/// A word of narrow memory is read even when it begins at the last byte.
inline constexpr std::size_t narrow_slack = 8;

/// Engines that fill rotating rows.
enum class RowOwner : std::uint8_t { none, ring_a, ring_b, narrow_to_wide };

struct TileMemory {
    std::array<std::uint8_t, narrow_bytes + narrow_slack> narrow;
    std::array<std::array<std::uint8_t, row_bytes>, wide_rows> wide;
    /// How many bytes of a row were written: what ring_send sends and wide_to_narrow reads. An
    /// assumption in place of an unknown length rule. (fitted)
    std::array<std::uint16_t, wide_rows> row_length;
    /// Hidden hardware that the vendor's programs seem to rely on: who filled a rotating row that
    /// nobody has emptied yet. Gathers send four packets of 16 words on a credit of two rows.
    /// (inferred; MachineOptions::full_bits switches it)
    std::array<RowOwner, wide_rows> full;
    /// Two buffers of 64 float32 scales, then two buffers of 64 int32 biases.
    std::array<std::uint8_t, scaling_words * scaling_word_bytes> scaling;

    [[nodiscard]] float lane_scale(unsigned buffer, unsigned lane) const {
        return read<float>(scaling.data() + buffer * row_bytes + 4 * lane);
    }
    [[nodiscard]] std::int32_t lane_bias(unsigned buffer, unsigned lane) const {
        return read<std::int32_t>(scaling.data() + (2 + buffer) * row_bytes + 4 * lane);
    }
    template <typename T>
    [[nodiscard]] static T read(const std::uint8_t* at) {
        T value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
};

}  // namespace reef::edgetpu::sim
