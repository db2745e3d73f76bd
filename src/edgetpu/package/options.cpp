#include "edgetpu/package/options.h"

#include <flatbuffers/flexbuffers.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "reef/model/flexbuffer.h"

namespace reef::edgetpu {
namespace {

using flexbuffers::Reference;

Status refuse(std::string_view key, std::string_view kind) {
    return fail(Cause::unsupported, fmt::format("the option '{}' holds a {}", key, kind), {},
                "Reef copies numbers, strings, blobs and vectors of numbers");
}

bool is_number(const Reference& value) {
    return value.IsNull() || value.IsBool() || value.IsNumeric();
}

void add_number(flexbuffers::Builder& builder, const Reference& value) {
    if (value.IsNull()) return builder.Null();
    if (value.IsBool()) return builder.Bool(value.AsBool());
    if (value.IsFloat()) return builder.Double(value.AsDouble());
    if (value.IsUInt()) return builder.UInt(value.AsUInt64());
    builder.Int(value.AsInt64());
}

/// Elements of an untyped or typed vector; Vector's own accessors need its kind.
template <typename Vector>
Status add_vector(flexbuffers::Builder& builder, std::string_view key, const Vector& elements) {
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (!is_number(elements[i])) return refuse(key, "vector of other things than numbers");
    }
    builder.Key(key.data(), key.size());
    builder.Vector([&] {
        for (std::size_t i = 0; i < elements.size(); ++i) add_number(builder, elements[i]);
    });
    return {};
}

/// What read_flexbuffer does not enter.
Status add_other(flexbuffers::Builder& builder, std::string_view key, const Reference& value,
                 const model::FlexOther& other) {
    if (value.IsTypedVector()) return add_vector(builder, key, value.AsTypedVector());
    if (value.IsFixedTypedVector()) return add_vector(builder, key, value.AsFixedTypedVector());
    // A map is a vector to FlexBuffers as well.
    if (value.IsVector() && !value.IsMap()) return add_vector(builder, key, value.AsVector());
    if (!value.IsUInt()) return refuse(key, other.kind);
    builder.Key(key.data(), key.size());
    builder.UInt(value.AsUInt64());
    return {};
}

void add_bytes(flexbuffers::Builder& builder, bool text, Bytes bytes) {
    if (text) {
        builder.String(std::string(as_text(bytes)));  // copies a terminating zero, too
    } else {
        builder.Blob(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
}

Status add_entry(flexbuffers::Builder& builder, const model::FlexMap::Entry& entry,
                 const Reference& reference, Bytes package) {
    const auto& [key, value] = entry;
    if (const auto* other = std::get_if<model::FlexOther>(&value)) {
        return add_other(builder, key, reference, *other);
    }
    builder.Key(key.data(), key.size());
    const auto* text = std::get_if<std::string_view>(&value);
    const auto* blob = std::get_if<Bytes>(&value);
    if (text == nullptr && blob == nullptr) {
        add_number(builder, reference);
    } else if (key == package_key) {
        add_bytes(builder, text != nullptr, package);
    } else {
        add_bytes(builder, text != nullptr, text != nullptr ? as_bytes(*text) : *blob);
    }
    return {};
}

}  // namespace

SharedBytes new_options(std::vector<std::byte> package) {
    auto owner = std::make_shared<flexbuffers::Builder>(package.size() + 4096);
    flexbuffers::Builder& builder = *owner;
    builder.Map([&] {
        builder.Int("1", 0);
        builder.Key(package_key.data(), package_key.size());
        const std::size_t size = package.size();
        package.push_back(std::byte{0});  // which is copied, too
        builder.String(reinterpret_cast<const char*>(package.data()), size);
        builder.Int("5", -1);
        builder.Vector("6", [&] { builder.Int(18); });
        builder.Vector("7", [] {});
    });
    builder.Finish();
    return {std::as_bytes(std::span(builder.GetBuffer())), std::move(owner)};
}

Result<std::vector<std::byte>> options_with_package(Bytes options, Bytes package) {
    // FlexBuffers align to their own start, which is off in most files.
    const SharedBytes aligned = SharedBytes::copy_of(options);
    const auto map = REEF_TRY(model::read_flexbuffer(aligned.view()));
    REEF_TRY(map.bytes(package_key));
    const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.view().data());
    if (!flexbuffers::VerifyBuffer(data, aligned.size(), nullptr)) {
        return fail(Cause::bad_input, "no sound FlexBuffer");
    }
    const auto values = flexbuffers::GetRoot(data, aligned.size()).AsMap().Values();
    flexbuffers::Builder builder(package.size() + 4096);
    const std::size_t start = builder.StartMap();
    for (std::size_t i = 0; i < map.entries().size(); ++i) {
        REEF_CHECK(add_entry(builder, map.entries()[i], values[i], package));
    }
    builder.EndMap(start);
    builder.Finish();
    const Bytes bytes = std::as_bytes(std::span(builder.GetBuffer()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace reef::edgetpu
