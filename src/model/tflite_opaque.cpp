#include "model/tflite_opaque.h"

#include <fmt/format.h>

#include <memory>

namespace reef::model {
namespace {

using flatbuffers::FlatBufferBuilder;

// What the generated code calls differently for each union.
struct QuantizationDetailsUnion {
    using Type = schema::QuantizationDetails;
    using Value = schema::QuantizationDetailsUnion;
    static constexpr auto last = Type::MAX;
    static const char* name(Type type) { return schema::EnumNameQuantizationDetails(type); }
    static bool verify(flatbuffers::Verifier& verifier, const void* table, Type type) {
        return schema::VerifyQuantizationDetails(verifier, table, type);
    }
};
struct BuiltinOptionsUnion {
    using Type = schema::BuiltinOptions;
    using Value = schema::BuiltinOptionsUnion;
    static constexpr auto last = Type::MAX;
    static const char* name(Type type) { return schema::EnumNameBuiltinOptions(type); }
    static bool verify(flatbuffers::Verifier& verifier, const void* table, Type type) {
        return schema::VerifyBuiltinOptions(verifier, table, type);
    }
};
struct BuiltinOptions2Union {
    using Type = schema::BuiltinOptions2;
    using Value = schema::BuiltinOptions2Union;
    static constexpr auto last = Type::MAX;
    static const char* name(Type type) { return schema::EnumNameBuiltinOptions2(type); }
    static bool verify(flatbuffers::Verifier& verifier, const void* table, Type type) {
        return schema::VerifyBuiltinOptions2(verifier, table, type);
    }
};

std::vector<std::byte> finished(FlatBufferBuilder& builder, flatbuffers::Offset<void> root) {
    builder.Finish(root);
    const Bytes bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    return {bytes.begin(), bytes.end()};
}

const void* root_of(const std::vector<std::byte>& bytes) {
    return flatbuffers::GetRoot<void>(bytes.data());
}

/// Verifies the root's offset, then the table by `verify_table(verifier, table)`.
template <typename VerifyTable>
Status check_sound(const OpaqueTable& table, VerifyTable&& verify_table) {
    flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(table.bytes.data()),
                                   table.bytes.size());
    if (table.bytes.size() >= 8 && verifier.VerifyOffset(0) != 0 &&
        verify_table(verifier, root_of(table.bytes))) {
        return {};
    }
    return fail(Cause::bad_argument,
                fmt::format("the opaque {} is not a sound FlatBuffer", table.type_name));
}

Status check_canonical(const OpaqueTable& table, const std::vector<std::byte>& canonical) {
    if (table.bytes == canonical) return {};
    return fail(Cause::bad_argument,
                fmt::format("the opaque {} is not in canonical form", table.type_name), {},
                "pack it with FlatBuffers' object API, fields at their defaults left out");
}

template <typename Union>
PackedUnion<typename Union::Type> pack_member(FlatBufferBuilder& builder, typename Union::Type type,
                                              const void* table) {
    typename Union::Value value;
    value.type = type;
    value.value = Union::Value::UnPack(table, type, nullptr);
    return {type, value.Pack(builder)};
}

template <typename Union>
std::optional<OpaqueTable> take_member(typename Union::Type type, const void* table) {
    if (table == nullptr || type == Union::Type::NONE || type > Union::last) return std::nullopt;
    FlatBufferBuilder builder(256);
    const auto packed = pack_member<Union>(builder, type, table);
    return OpaqueTable{Union::name(type), finished(builder, packed.value)};
}

/// NONE when the union has no member of that name.
template <typename Union>
typename Union::Type member_named(const std::string& name) {
    using Member = typename Union::Type;
    for (int i = 1; i <= static_cast<int>(Union::last); ++i) {
        if (name == Union::name(static_cast<Member>(i))) return static_cast<Member>(i);
    }
    return Member::NONE;
}

template <typename Union>
Status check_member(const OpaqueTable& table) {
    const auto type = member_named<Union>(table.type_name);
    if (type == Union::Type::NONE) {
        return fail(Cause::bad_argument,
                    fmt::format("no table '{}' may stand here", table.type_name));
    }
    REEF_CHECK(check_sound(table, [&](flatbuffers::Verifier& verifier, const void* root) {
        return Union::verify(verifier, root, type);
    }));
    return check_canonical(table, take_member<Union>(type, root_of(table.bytes))->bytes);
}

template <typename Union>
PackedUnion<typename Union::Type> pack_named(FlatBufferBuilder& builder, const OpaqueTable& table) {
    return pack_member<Union>(builder, member_named<Union>(table.type_name), root_of(table.bytes));
}

/// A union's type without its value says nothing, but the object API would follow it.
void drop_empty_unions(schema::SparsityParametersT& table) {
    for (const auto& dimension : table.dim_metadata) {
        if (dimension->array_segments.value == nullptr) dimension->array_segments.Reset();
        if (dimension->array_indices.value == nullptr) dimension->array_indices.Reset();
    }
}
void drop_empty_unions(schema::VariantSubTypeT&) {}  // has none

template <typename T>
flatbuffers::Offset<T> pack_copy(FlatBufferBuilder& builder, const T& table) {
    const std::unique_ptr<typename T::NativeTableType> native(table.UnPack());
    drop_empty_unions(*native);
    return T::Pack(builder, native.get());
}

template <typename T>
OpaqueTable take_table(const char* name, const T& table) {
    FlatBufferBuilder builder(256);
    const auto root = pack_copy(builder, table);
    return {name, finished(builder, root.Union())};
}

template <typename T>
Status check_table(const OpaqueTable& table, const char* name) {
    if (table.type_name != name) {
        return fail(Cause::bad_argument,
                    fmt::format("no table '{}' may stand here", table.type_name));
    }
    REEF_CHECK(check_sound(table, [](flatbuffers::Verifier& verifier, const void* root) {
        return static_cast<const T*>(root)->Verify(verifier);
    }));
    const T& root = *static_cast<const T*>(root_of(table.bytes));
    return check_canonical(table, take_table(name, root).bytes);
}

constexpr const char* sparsity_name = "SparsityParameters";
constexpr const char* variant_name = "VariantSubType";

}  // namespace

std::optional<OpaqueTable> opaque_from(schema::QuantizationDetails type, const void* table) {
    return take_member<QuantizationDetailsUnion>(type, table);
}
std::optional<OpaqueTable> opaque_from(schema::BuiltinOptions2 type, const void* table) {
    return take_member<BuiltinOptions2Union>(type, table);
}
OpaqueOptions opaque_from(schema::BuiltinOptions type, const void* table) {
    OpaqueOptions options;
    options.union_type = static_cast<std::uint8_t>(type);
    if (auto opaque = take_member<BuiltinOptionsUnion>(type, table)) {
        options.type_name = std::move(opaque->type_name);
        options.bytes = std::move(opaque->bytes);
    }
    return options;
}
OpaqueTable opaque_from(const schema::SparsityParameters& table) {
    return take_table(sparsity_name, table);
}
OpaqueTable opaque_from(const schema::VariantSubType& table) {
    return take_table(variant_name, table);
}

Status check_quantization_details(const OpaqueTable& table) {
    return check_member<QuantizationDetailsUnion>(table);
}
Status check_builtin_options_2(const OpaqueTable& table) {
    return check_member<BuiltinOptions2Union>(table);
}
Status check_builtin_options(const OpaqueOptions& options) {
    const bool unknown = options.type_name.empty() && options.bytes.empty();
    const auto type = static_cast<schema::BuiltinOptions>(options.union_type);
    if (unknown && type > BuiltinOptionsUnion::last) return {};
    if (member_named<BuiltinOptionsUnion>(options.type_name) != type) {
        return fail(Cause::bad_argument, fmt::format("options '{}' are not number {}",
                                                     options.type_name, options.union_type));
    }
    return check_member<BuiltinOptionsUnion>({options.type_name, options.bytes});
}
Status check_sparsity(const OpaqueTable& table) {
    return check_table<schema::SparsityParameters>(table, sparsity_name);
}
Status check_variant(const OpaqueTable& table) {
    return check_table<schema::VariantSubType>(table, variant_name);
}

PackedUnion<schema::QuantizationDetails> pack_quantization_details(FlatBufferBuilder& builder,
                                                                   const OpaqueTable& table) {
    return pack_named<QuantizationDetailsUnion>(builder, table);
}
PackedUnion<schema::BuiltinOptions2> pack_builtin_options_2(FlatBufferBuilder& builder,
                                                            const OpaqueTable& table) {
    return pack_named<BuiltinOptions2Union>(builder, table);
}
PackedUnion<schema::BuiltinOptions> pack_builtin_options(FlatBufferBuilder& builder,
                                                         const OpaqueOptions& options) {
    return pack_member<BuiltinOptionsUnion>(
        builder, static_cast<schema::BuiltinOptions>(options.union_type), root_of(options.bytes));
}
flatbuffers::Offset<schema::SparsityParameters> pack_sparsity(FlatBufferBuilder& builder,
                                                              const OpaqueTable& table) {
    return pack_copy(builder,
                     *static_cast<const schema::SparsityParameters*>(root_of(table.bytes)));
}
flatbuffers::Offset<schema::VariantSubType> pack_variant(FlatBufferBuilder& builder,
                                                         const OpaqueTable& table) {
    return pack_copy(builder, *static_cast<const schema::VariantSubType*>(root_of(table.bytes)));
}

}  // namespace reef::model
