#include "reef/base/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/allocate.h"
#include "base/npy_header.h"

namespace reef {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
// NumPy pads the header so that the elements start at a multiple of this.
constexpr std::size_t data_alignment = 64;

bool is_complex(ElementType type) {
    return type == ElementType::complex64 || type == ElementType::complex128;
}

void swap_bytes(std::span<std::byte> data, std::size_t width) {
    for (std::size_t i = 0; i < data.size(); i += width) {
        std::ranges::reverse(data.subspan(i, width));
    }
}

/// Copies elements so that the last index, fastest in `from`, becomes the slowest in `to`:
/// C order with `shape` into Fortran order. With `shape` reversed it is its own inverse.
void transpose(Bytes from, std::span<std::byte> to, const std::vector<std::int64_t>& shape,
               std::size_t item) {
    if (from.empty()) return;
    const std::size_t rank = shape.size();
    std::vector<std::size_t> steps(rank);  // bytes in `to` from one index to the next
    std::size_t step = item;
    for (std::size_t i = 0; i < rank; ++i) {
        steps[i] = step;
        step *= static_cast<std::size_t>(shape[i]);
    }
    std::vector<std::int64_t> index(rank, 0);
    std::size_t target = 0;
    for (std::size_t source = 0; source < from.size(); source += item) {
        std::memcpy(to.data() + target, from.data() + source, item);
        for (std::size_t i = rank; i-- > 0;) {
            target += steps[i];
            if (++index[i] < shape[i]) break;
            target -= steps[i] * static_cast<std::size_t>(shape[i]);
            index[i] = 0;
        }
    }
}

struct Preamble {
    std::string_view header;
    std::size_t header_offset;
    Bytes elements;
};

Result<Preamble> split(Bytes file) {
    ByteReader reader(file);
    const auto start = reader.take(magic.size());
    if (!start || as_text(*start) != magic) {
        return fail(Cause::bad_input, "not a .npy file: it does not start with \\x93NUMPY");
    }
    const unsigned major = REEF_TRY(reader.u8());
    const unsigned minor = REEF_TRY(reader.u8());
    if (major < 1 || major > 3 || minor != 0) {
        return fail(Cause::unsupported, fmt::format(".npy version {}.{}", major, minor), "",
                    "versions 1.0, 2.0 and 3.0 are read");
    }
    const std::size_t length = major == 1 ? REEF_TRY(reader.u16()) : REEF_TRY(reader.u32());
    const std::size_t offset = reader.offset();
    const std::string_view header = as_text(REEF_TRY(in_place(reader.take(length), ".npy header")));
    return Preamble{header, offset, file.subspan(reader.offset())};
}

Result<std::uint64_t> check(const Array& array) {
    auto bytes = npy_byte_count(array.type, array.shape);
    if (!bytes) {
        if (bytes.error().cause == Cause::bad_input) bytes.error().cause = Cause::bad_argument;
        return bytes;
    }
    if (*bytes != array.data.size()) {
        return fail(Cause::bad_argument, fmt::format("an array whose shape needs {} bytes has {}",
                                                     *bytes, array.data.size()));
    }
    return bytes;
}

}  // namespace

std::int64_t Array::element_count() const {
    std::int64_t count = 1;
    for (const std::int64_t dimension : shape) count *= dimension;
    return count;
}

Result<Array> read_npy(Bytes file) {
    const Preamble preamble = REEF_TRY(split(file));
    NpyHeader header = REEF_TRY(parse_npy_header(preamble.header, preamble.header_offset));
    const std::uint64_t bytes =
        REEF_TRY(in_place(npy_byte_count(header.type, header.shape), ".npy header"));
    if (bytes != preamble.elements.size()) {
        return fail(
            Cause::bad_input,
            fmt::format("the shape in the .npy header needs {} bytes of elements, "
                        "{} follow at byte offset {}",
                        bytes, preamble.elements.size(), file.size() - preamble.elements.size()),
            "", "the file is truncated or holds more than one array");
    }
    const std::size_t item = size_of(header.type).value();
    Array array{header.type, std::move(header.shape), REEF_TRY(allocate_bytes(bytes))};
    if (header.order == Order::fortran) {
        const std::vector<std::int64_t> reversed(array.shape.rbegin(), array.shape.rend());
        transpose(preamble.elements, array.data, reversed, item);
    } else {
        std::ranges::copy(preamble.elements, array.data.begin());
    }
    if (header.big_endian) swap_bytes(array.data, is_complex(array.type) ? item / 2 : item);
    return array;
}

Result<std::vector<std::byte>> write_npy(const Array& array, Order order) {
    const std::uint64_t bytes = REEF_TRY(check(array));
    std::string header = REEF_TRY(print_npy_header(array.type, array.shape, order));
    // 64 dimensions of 19 digits stay far below the 65535 bytes of a version 1.0 header.
    const std::size_t start = magic.size() + 4;
    const std::size_t used = start + header.size() + 1;
    header.append((data_alignment - used % data_alignment) % data_alignment, ' ');
    header += '\n';

    std::vector<std::byte> file = REEF_TRY(allocate_bytes(start + header.size() + bytes));
    const std::array<std::uint8_t, 4> version{1, 0, static_cast<std::uint8_t>(header.size()),
                                              static_cast<std::uint8_t>(header.size() >> 8)};
    auto out = std::ranges::copy(as_bytes(magic), file.begin()).out;
    out = std::ranges::copy(std::as_bytes(std::span(version)), out).out;
    out = std::ranges::copy(as_bytes(header), out).out;
    if (order == Order::fortran) {
        transpose(array.data, std::span(file).last(bytes), array.shape,
                  size_of(array.type).value());
    } else {
        std::ranges::copy(array.data, out);
    }
    return file;
}

}  // namespace reef
