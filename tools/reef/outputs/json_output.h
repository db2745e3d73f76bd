// JSON documents that the read verbs print with --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "outputs/console.h"
#include "reef/chip/report.h"

namespace reef::tool {

using Json = nlohmann::ordered_json;

/// Raised whenever a key changes its name or meaning; new keys do not raise it.
inline constexpr int json_schema_version = 1;

/// {"schema_version": 1, "verb": VERB}
[[nodiscard]] Json json_document(std::string_view verb);

/// Members in their order.
[[nodiscard]] Json to_json(const chip::Value& value);

/// Two-space indentation, arrays of plain values on one line, keys in the order of their insertion,
/// malformed UTF-8 replaced. JSON has no NaN and no infinity: they become null.
[[nodiscard]] std::string json_text(const Json& document);
void print_json(Console& console, const Json& document);

}  // namespace reef::tool
