// Arrays and the NumPy file formats .npy and .npz.
//
// Formats: .npy versions 1.0, 2.0 and 3.0 as documented by NumPy (numpy.lib.format). .npz is a ZIP
// archive of .npy members, stored or deflated; zip64 is read; encryption and multi-disk archives
// are refused by name. Byte orders: little endian and "not applicable" are read, big endian is
// converted; written files are little endian.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/element_type.h"
#include "reef/base/result.h"

namespace reef {

/// A dense array. `data` is always in C order (last index fastest), little endian.
struct Array {
    ElementType type = ElementType::uint8;
    std::vector<std::int64_t> shape;  ///< empty: a scalar, one element
    std::vector<std::byte> data;

    [[nodiscard]] std::int64_t element_count() const;
    friend bool operator==(const Array&, const Array&) = default;
};

/// How the elements lie in a written file. Reading accepts both and gives C order.
enum class Order : std::uint8_t { c, fortran };

/// Element types with a NumPy dtype: all of float16/32/64, int8/16/32/64, uint8/16/32/64, bool,
/// complex64/128. Others are refused by name.
[[nodiscard]] Result<Array> read_npy(Bytes file);
[[nodiscard]] Result<std::vector<std::byte>> write_npy(const Array& array, Order order = Order::c);

/// Members in file order; names without the ".npy" ending.
using NamedArrays = std::vector<std::pair<std::string, Array>>;
[[nodiscard]] Result<NamedArrays> read_npz(Bytes file);
enum class Compression : std::uint8_t { stored, deflated };
[[nodiscard]] Result<std::vector<std::byte>> write_npz(const NamedArrays& arrays,
                                                       Compression compression);

}  // namespace reef
