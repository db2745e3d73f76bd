#include "outputs/json_output.h"

#include <algorithm>

namespace reef::tool {
namespace {

std::string compact(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Arrays of numbers and names stay on one line: a tensor may have a thousand scales.
void append(std::string& text, const Json& value, std::size_t indent) {
    const auto is_flat = [](const Json& item) { return item.is_primitive(); };
    if (value.is_primitive() || value.empty() ||
        (value.is_array() && std::ranges::all_of(value, is_flat))) {
        text += compact(value);
        return;
    }
    const std::string margin(indent + 2, ' ');
    text += value.is_array() ? '[' : '{';
    std::string_view separator = "\n";
    for (const auto& [key, item] : value.items()) {
        text += separator;
        text += margin;
        if (value.is_object()) {
            text += compact(key);
            text += ": ";
        }
        append(text, item, indent + 2);
        separator = ",\n";
    }
    text += '\n';
    text.append(indent, ' ');
    text += value.is_array() ? ']' : '}';
}

struct ToJson {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(const chip::Array& values) const {
        Json json = Json::array();
        for (const chip::Value& value : values) json.push_back(to_json(value));
        return json;
    }
    Json operator()(const chip::Object& members) const {
        Json json = Json::object();
        for (const auto& [name, value] : members) json[name] = to_json(value);
        return json;
    }
    Json operator()(const auto& plain) const { return plain; }
};

}  // namespace

Json to_json(const chip::Value& value) {
    return std::visit(ToJson{}, value.held());
}

Json json_document(std::string_view verb) {
    return {{"schema_version", json_schema_version}, {"verb", verb}};
}

std::string json_text(const Json& document) {
    std::string text;
    append(text, document, 0);
    return text;
}

void print_json(Console& console, const Json& document) {
    console.write(json_text(document));
    console.write("\n");
}

}  // namespace reef::tool
