// The element types of tensors, with their sizes and names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reef {

/// Numbered as TFLite's TensorType, so that a file's number needs no translation. Numbers above the
/// last enumerator are preserved by the reader and have no name or size here.
enum class ElementType : std::uint8_t {
    float32 = 0,
    float16 = 1,
    int32 = 2,
    uint8 = 3,
    int64 = 4,
    string = 5,
    boolean = 6,
    int16 = 7,
    complex64 = 8,
    int8 = 9,
    float64 = 10,
    complex128 = 11,
    uint64 = 12,
    resource = 13,
    variant = 14,
    uint32 = 15,
    uint16 = 16,
    int4 = 17,
    bfloat16 = 18,
};

/// Bytes of one element; nothing for string, resource, variant, int4 and unknown numbers.
[[nodiscard]] std::optional<std::size_t> size_of(ElementType type);

/// "uint8", "float32", ...; "unknown" for numbers without a name here.
[[nodiscard]] std::string_view name_of(ElementType type);

/// Accepts the names that name_of gives and the short forms users type: u8, i8, i16, i32, i64, f16,
/// f32, f64, bool, ui8, si8.
[[nodiscard]] std::optional<ElementType> element_type_from(std::string_view name);

}  // namespace reef
