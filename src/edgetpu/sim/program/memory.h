// The memories of a tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::sim {

using spec::activation_fifo_units;
using spec::activation_unit_bytes;
using spec::lane_count;
using spec::narrow_bytes;
using spec::narrow_word_bytes;
using spec::parameter_fifo_units;
using spec::parameter_unit_bytes;
using spec::relay_unit_bytes;
using spec::row_bytes;
using spec::scaling_word_bytes;
using spec::scaling_words;
using spec::wide_rows;
inline constexpr std::size_t narrow_words = narrow_bytes / narrow_word_bytes;
inline constexpr std::size_t row_words = row_bytes / narrow_word_bytes;
/// Tiles of a row, and rows.
inline constexpr unsigned grid_side = spec::grid_side;
inline constexpr unsigned tile_count = spec::tile_count;
static_assert(tile_count == grid_side * grid_side);

/// A word of narrow memory is read even when it begins at the last byte, and so is a vector that
/// begins in such a word.
inline constexpr std::size_t narrow_slack = 32;

/// How narrow_to_wide lays out words in a row: every 16 bytes a transposed matrix of 4x4 bytes,
/// every 8 bytes one of 2x2 halfwords.
using spec::RowFormat;

/// Words that share a matrix.
[[nodiscard]] constexpr unsigned words_per_block(RowFormat format) {
    if (format == RowFormat::plain_) return 1;
    return format == RowFormat::transpose_bytes_ ? 4 : 2;
}

/// Engines that fill rotating rows.
enum class RowOwner : std::uint8_t { none, ring_a, ring_b, narrow_to_wide };

/// Who filled a rotating row that nobody has emptied yet.
class RowMarks {
  public:
    [[nodiscard]] RowOwner operator[](std::size_t row) const { return owners_[row]; }
    void fill(std::size_t row, RowOwner owner) {
        owners_[row] = owner;
        Rows& rows = filled_[static_cast<std::size_t>(owner)];
        rows.end = std::max(rows.end, row + 1);
        rows.before_first = std::max(rows.before_first, wide_rows - row);
    }
    void empty(std::size_t row) { owners_[row] = RowOwner::none; }
    void forget(RowOwner owner) {
        Rows& rows = filled_[static_cast<std::size_t>(owner)];
        // Without a branch: vectors of rows.
        for (std::size_t row = wide_rows - rows.before_first; row < rows.end; ++row)
            owners_[row] = owners_[row] == owner ? RowOwner::none : owners_[row];
        rows = {};
    }
    friend bool operator==(const RowMarks& a, const RowMarks& b) { return a.owners_ == b.owners_; }

  private:
    /// Between which rows an owner's are; both 0: it has none.
    struct Rows {
        std::size_t before_first;  ///< counted from the memory's end
        std::size_t end;
    };
    std::array<RowOwner, wide_rows> owners_;
    std::array<Rows, 4> filled_{};  ///< by owner
};

struct TileMemory {
    std::array<std::uint8_t, narrow_bytes + narrow_slack> narrow;
    std::array<std::array<std::uint8_t, row_bytes>, wide_rows> wide;
    /// How many bytes of a row were written: what ring_send sends and wide_to_narrow reads. An
    /// assumption in place of an unknown length rule. (fitted)
    std::array<std::uint16_t, wide_rows> row_length;
    /// Where words are tags (TensorTap::tags_words()) and rows keep them whole.
    std::array<RowFormat, wide_rows> row_format;
    /// Hidden hardware that the vendor's programs seem to rely on. Gathers send four packets of 16
    /// words on a credit of two rows. (inferred; MachineOptions::full_bits switches it)
    RowMarks full;
    /// Two buffers of 64 float32 scales, then two buffers of 64 int32 biases.
    std::array<std::uint8_t, scaling_words * scaling_word_bytes> scaling;

    [[nodiscard]] const std::uint8_t* scales(unsigned buffer) const {
        return scaling.data() + buffer * row_bytes;
    }
    [[nodiscard]] const std::uint8_t* biases(unsigned buffer) const {
        return scaling.data() + (2 + buffer) * row_bytes;
    }
    [[nodiscard]] float lane_scale(unsigned buffer, unsigned lane) const {
        return read<float>(scales(buffer) + 4 * lane);
    }
    [[nodiscard]] std::int32_t lane_bias(unsigned buffer, unsigned lane) const {
        return read<std::int32_t>(biases(buffer) + 4 * lane);
    }
    template <typename T>
    [[nodiscard]] static T read(const std::uint8_t* at) {
        T value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
};

}  // namespace reef::edgetpu::sim
