// What a chip says about a model or a program: sections for people, a document for programs.
//
// A chip says what there is to say; how wide a terminal is and how JSON is written is the
// business of who prints it.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace reef::chip {

/// A value as JSON has it. Members of objects keep the order in which they were added.
class Value {
  public:
    using Array = std::vector<Value>;
    using Object = std::vector<std::pair<std::string, Value>>;
    using Held = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double,
                              std::string, Array, Object>;

    Value() = default;  ///< null
    template <std::same_as<bool> T>
    Value(T value) : held_(value) {}
    template <std::signed_integral T>
    Value(T value) : held_(static_cast<std::int64_t>(value)) {}
    template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>) Value(T value) : held_(static_cast<std::uint64_t>(value)) {}
    template <std::floating_point T>
    Value(T value) : held_(static_cast<double>(value)) {}
    Value(std::string value) : held_(std::move(value)) {}
    Value(std::string_view value) : held_(std::string(value)) {}
    Value(const char* value) : held_(std::string(value)) {}
    Value(Array value) : held_(std::move(value)) {}
    Value(Object value) : held_(std::move(value)) {}
    template <std::integral T>
    Value(const std::vector<T>& values) : held_(Array(values.begin(), values.end())) {}
    Value(const std::vector<std::string>& values) : held_(Array(values.begin(), values.end())) {}

    [[nodiscard]] const Held& held() const { return held_; }

  private:
    Held held_;
};
using Array = Value::Array;
using Object = Value::Object;

/// One line: what it is about, and what is so. Without a name it goes on with the line before.
struct Field {
    std::string name;
    std::string text;
};

struct TableColumn {
    std::string title;
    bool number = false;  ///< its cells end below each other
};
struct Table {
    std::vector<TableColumn> columns;
    std::vector<std::vector<std::string>> rows;
    std::size_t left_out = 0;  ///< rows behind these that were not asked for
};

/// A sentence by itself.
struct Note {
    std::string text;
};

struct Section {
    std::string title;
    std::string about;  ///< behind the title; may be empty
    std::vector<std::variant<Field, Table, Note>> lines;
    /// An option asked for it: it is shown beside a listing that stands in the others' place.
    bool asked_for = false;

    void add(std::string name, std::string text) {
        lines.emplace_back(Field{std::move(name), std::move(text)});
    }
};

enum class Detail : std::uint8_t { glance, all };

}  // namespace reef::chip
