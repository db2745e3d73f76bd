// The text at the start of a .npy file: a Python dictionary of descr, fortran_order and shape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/npy.h"

namespace reef {

struct NpyHeader {
    ElementType type = ElementType::uint8;
    bool big_endian = false;
    Order order = Order::c;
    std::vector<std::int64_t> shape;
};

/// `offset` is the byte offset of `text` in its file, for the error texts.
[[nodiscard]] Result<NpyHeader> parse_npy_header(std::string_view text, std::size_t offset);

/// The dictionary without padding; unsupported for an element type without a dtype.
[[nodiscard]] Result<std::string> print_npy_header(ElementType type,
                                                   const std::vector<std::int64_t>& shape,
                                                   Order order);

/// Bytes of an array of that type and shape. Refuses negative dimensions, more than
/// max_npy_dimensions, and sizes beyond 63 bits (zero dimensions left out of the product, so that
/// partial products of an accepted shape cannot overflow either).
[[nodiscard]] Result<std::uint64_t> npy_byte_count(ElementType type,
                                                   const std::vector<std::int64_t>& shape);

/// NumPy 2 allows 64 dimensions, older ones 32.
inline constexpr std::size_t max_npy_dimensions = 64;

}  // namespace reef
