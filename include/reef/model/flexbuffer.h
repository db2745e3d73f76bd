// FlexBuffers: the key-value maps that custom operators keep their options in.
//
// Format: a FlexBuffer is read from its end (root value, its packed type, its width). Only a map as
// the root is read, with scalars, strings and blobs as its values; nested maps and vectors are
// named but not entered. Every access is checked against the buffer, aligned or not.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::model {

/// A value that Reef does not enter: "vector", "map", "typed vector", "unsigned above 2^63".
struct FlexOther {
    std::string_view kind;
    friend bool operator==(const FlexOther&, const FlexOther&) = default;
};

/// monostate: null. Strings and blobs are views into the buffer.
using FlexValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string_view, Bytes, FlexOther>;

/// Valid as long as the bytes it was read from.
class FlexMap {
  public:
    using Entry = std::pair<std::string_view, FlexValue>;

    FlexMap() = default;
    explicit FlexMap(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// In the order of the buffer (sorted by key when a FlexBuffers library wrote it).
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

    /// Null when there is no such key.
    [[nodiscard]] const FlexValue* find(std::string_view key) const;

    // By type. Errors: not_found without the key, bad_input for a value of another kind. A number
    // is given in the kind asked for, as FlexBuffers' own accessors do: an integer or bool is a
    // real, an integer is a bool (not 0), a bool is an integer.
    [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
    [[nodiscard]] Result<double> real(std::string_view key) const;
    [[nodiscard]] Result<bool> boolean(std::string_view key) const;
    /// A string or a blob.
    [[nodiscard]] Result<Bytes> bytes(std::string_view key) const;

  private:
    [[nodiscard]] Result<FlexValue> value(std::string_view key) const;

    std::vector<Entry> entries_;
};

/// Errors: bad_input with the byte offset; also when the root is not a map.
[[nodiscard]] Result<FlexMap> read_flexbuffer(Bytes bytes);

}  // namespace reef::model
