#include "reef/base/element_type.h"

#include <array>

namespace reef {
namespace {

struct Row {
    ElementType type;
    std::string_view name;
    std::size_t size;  // 0: no fixed size in whole bytes
};

constexpr std::array rows{
    Row{ElementType::float32, "float32", 4},     Row{ElementType::float16, "float16", 2},
    Row{ElementType::int32, "int32", 4},         Row{ElementType::uint8, "uint8", 1},
    Row{ElementType::int64, "int64", 8},         Row{ElementType::string, "string", 0},
    Row{ElementType::boolean, "bool", 1},        Row{ElementType::int16, "int16", 2},
    Row{ElementType::complex64, "complex64", 8}, Row{ElementType::int8, "int8", 1},
    Row{ElementType::float64, "float64", 8},     Row{ElementType::complex128, "complex128", 16},
    Row{ElementType::uint64, "uint64", 8},       Row{ElementType::resource, "resource", 0},
    Row{ElementType::variant, "variant", 0},     Row{ElementType::uint32, "uint32", 4},
    Row{ElementType::uint16, "uint16", 2},       Row{ElementType::int4, "int4", 0},
    Row{ElementType::bfloat16, "bfloat16", 2},
};

struct Alias {
    std::string_view name;
    ElementType type;
};

constexpr std::array aliases{
    Alias{"u8", ElementType::uint8},    Alias{"ui8", ElementType::uint8},
    Alias{"i8", ElementType::int8},     Alias{"si8", ElementType::int8},
    Alias{"i16", ElementType::int16},   Alias{"u16", ElementType::uint16},
    Alias{"i32", ElementType::int32},   Alias{"u32", ElementType::uint32},
    Alias{"i64", ElementType::int64},   Alias{"u64", ElementType::uint64},
    Alias{"f16", ElementType::float16}, Alias{"f32", ElementType::float32},
    Alias{"f64", ElementType::float64},
};

const Row* find(ElementType type) {
    for (const Row& row : rows) {
        if (row.type == type) return &row;
    }
    return nullptr;
}

}  // namespace

std::optional<std::size_t> size_of(ElementType type) {
    const Row* row = find(type);
    if (row == nullptr || row->size == 0) return std::nullopt;
    return row->size;
}

std::string_view name_of(ElementType type) {
    const Row* row = find(type);
    return row == nullptr ? std::string_view("unknown") : row->name;
}

std::optional<ElementType> element_type_from(std::string_view name) {
    for (const Row& row : rows) {
        if (row.name == name) return row.type;
    }
    for (const Alias& alias : aliases) {
        if (alias.name == name) return alias.type;
    }
    return std::nullopt;
}

}  // namespace reef
