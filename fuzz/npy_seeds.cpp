#include <span>
#include <string>
#include <string_view>

#include "reef/base/npy.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

Array ramp(ElementType type, std::vector<std::int64_t> shape) {
    Array array{type, std::move(shape), {}};
    array.data.resize(static_cast<std::size_t>(array.element_count()) * size_of(type).value_or(1));
    for (std::size_t i = 0; i < array.data.size(); ++i) array.data[i] = static_cast<std::byte>(i);
    return array;
}

/// A header that the writer would not make, with no elements after it.
std::vector<std::byte> header_only(unsigned version, std::string_view header) {
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
        file += static_cast<char>(header.size() >> (8 * i));
    }
    file += header;
    const auto bytes = std::as_bytes(std::span(file));
    return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<Seeds> npy_seeds() {
    constexpr ElementType types[] = {
        ElementType::float32, ElementType::float16,   ElementType::int8,       ElementType::uint8,
        ElementType::int64,   ElementType::complex64, ElementType::complex128, ElementType::boolean,
    };
    Seeds seeds;
    NamedArrays arrays;
    for (const ElementType type : types) {
        const std::string name(name_of(type));
        const Array array = ramp(type, {2, 3, 1});
        seeds.emplace_back(name + "-c.npy", REEF_TRY(write_npy(array, Order::c)));
        seeds.emplace_back(name + "-fortran.npy", REEF_TRY(write_npy(array, Order::fortran)));
        if (arrays.size() < 2) arrays.emplace_back(name, array);
    }
    seeds.emplace_back("scalar.npy", REEF_TRY(write_npy(ramp(ElementType::int32, {}))));
    seeds.emplace_back("empty.npy", REEF_TRY(write_npy(ramp(ElementType::float64, {0, 3}))));
    seeds.emplace_back(
        "big-endian.npy",
        header_only(2, "{\"shape\": (0L, 4), 'descr': '>c16', 'fortran_order': True}"));
    seeds.emplace_back("structured.npy",
                       header_only(3, "{'descr': [('x', '<f4')], 'fortran_order': False}"));
    seeds.emplace_back("stored.npz", REEF_TRY(write_npz(arrays, Compression::stored)));
    seeds.emplace_back("deflated.npz", REEF_TRY(write_npz(arrays, Compression::deflated)));
    seeds.emplace_back("none.npz", REEF_TRY(write_npz({}, Compression::stored)));
    return seeds;
}

}  // namespace reef::fuzz
