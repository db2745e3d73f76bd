// Regions of a chip's memory as tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "debug/print.h"

namespace reef::tool::debug {
namespace {

template <typename T>
T read(Bytes bytes, std::size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// As the host has it.
Json element(Bytes bytes, std::size_t at, const ShowTensor& tensor) {
    switch (tensor.type) {
        case ElementType::int8:
            return tensor.flips_signed ? read<std::uint8_t>(bytes, at) - 0x80
                                       : int{read<std::int8_t>(bytes, at)};
        case ElementType::uint16:
            return read<std::uint16_t>(bytes, at);
        case ElementType::int16:
            return tensor.flips_signed ? read<std::uint16_t>(bytes, at) - 0x8000
                                       : int{read<std::int16_t>(bytes, at)};
        case ElementType::int32:
            return read<std::int32_t>(bytes, at);
        case ElementType::float32:
            return read<float>(bytes, at);
        default:
            return read<std::uint8_t>(bytes, at);
    }
}

std::string element_text(Bytes bytes, std::size_t at, const ShowTensor& tensor) {
    const ElementType type = tensor.type;
    if (type == ElementType::float32) return fmt::format("{:>12.6g}", read<float>(bytes, at));
    const int width = type == ElementType::int32    ? 12
                      : type == ElementType::int16  ? 7
                      : type == ElementType::uint16 ? 6
                      : type == ElementType::int8   ? 5
                                                    : 4;
    return fmt::format("{:>{}}", element(bytes, at, tensor).get<std::int64_t>(), width);
}

Json part_json(const ShowTensor& tensor, std::span<const std::int64_t> strides,
               std::size_t dimension, Bytes bytes, std::size_t at) {
    if (dimension == tensor.shape.size()) return element(bytes, at, tensor);
    Json values = Json::array();
    for (std::uint32_t i = 0; i < tensor.shape[dimension]; ++i)
        values.push_back(part_json(tensor, strides, dimension + 1, bytes,
                                   at + i * static_cast<std::size_t>(strides[dimension])));
    return values;
}

}  // namespace

Json tensor_json(const ShowTensor& tensor, Bytes bytes) {
    return part_json(tensor, strides_of(tensor), 0, bytes, 0);
}

// A line for each pass of the innermost dimension, with the indices of the others in front.
std::string tensor_text(const ShowTensor& tensor, Bytes bytes) {
    const auto strides = strides_of(tensor);
    const std::size_t outer = tensor.shape.size() - 1;
    std::vector<std::uint32_t> index(outer, 0);
    std::string text;
    while (true) {
        std::size_t at = 0;
        std::string name;
        for (std::size_t d = 0; d < outer; ++d) {
            at += index[d] * static_cast<std::size_t>(strides[d]);
            name += fmt::format("{}{}", d == 0 ? "" : ",", index[d]);
        }
        text += fmt::format("[{}]", name);
        for (std::uint32_t i = 0; i < tensor.shape[outer]; ++i)
            text += element_text(bytes, at + i * static_cast<std::size_t>(strides[outer]), tensor);
        text += '\n';
        std::size_t d = outer;
        while (d > 0 && ++index[d - 1] == tensor.shape[d - 1]) index[--d] = 0;
        if (d == 0) return text;
    }
}

}  // namespace reef::tool::debug
