// Options of drivers: described once, so that they can be listed, checked and suggested.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/result.h"
#include "reef/runtime/uri.h"

namespace reef::runtime {

enum class OptionType : std::uint8_t {
    flag,     ///< true or false; also written 1 and 0, on and off
    integer,  ///< within the option's limits
    text,     ///< any bytes
    choice,   ///< one of a list of words
    file,     ///< a path
};
/// "flag", "integer", ...
[[nodiscard]] std::string_view to_string(OptionType type);

using OptionValue = std::variant<bool, std::int64_t, std::string>;
/// As it is written in a URI: "true", "4", the text itself.
[[nodiscard]] std::string to_string(const OptionValue& value);

/// One option of a driver.
struct OptionInfo {
    std::string name;
    OptionType type = OptionType::flag;
    /// Nothing: unless it is given, the driver decides; the sentence says how.
    std::optional<OptionValue> standard{};
    std::string sentence{};              ///< what it does, without a full stop
    std::vector<std::string> choices{};  ///< of a choice
    std::int64_t least = 0;              ///< of an integer
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::vector<std::string> backends{};  ///< that have it; empty: all of the driver's
};

struct Option {
    std::string name;
    OptionValue value;
    friend bool operator==(const Option&, const Option&) = default;
};

/// The options of one device: every one that its backend has, checked.
class OptionValues {
  public:
    /// Texts of a URI first, then values from the program, which win. Errors: bad_argument for
    /// names that `known` does not have for that backend, with those that it has and the nearest;
    /// for values of another type or outside of the limits. `device` is what errors name.
    [[nodiscard]] static Result<OptionValues> check(std::span<const OptionInfo> known,
                                                    const DeviceUri& device,
                                                    std::span<const Option> given = {});

    /// Whether the caller gave it. Precondition of all: the backend has an option of that name, and
    /// of the type that is asked for; a value that is neither given nor has a standard is false, 0
    /// or empty.
    [[nodiscard]] bool given(std::string_view name) const;
    [[nodiscard]] bool flag(std::string_view name) const;
    [[nodiscard]] std::int64_t integer(std::string_view name) const;
    [[nodiscard]] const std::string& text(std::string_view name) const;  ///< choices and files, too

  private:
    struct Entry {
        std::string name;
        OptionValue value;
        bool given = false;
    };
    [[nodiscard]] const Entry& entry(std::string_view name) const;
    std::vector<Entry> entries_;
};

/// The one of `known` that `name` may have been meant to be: few letters away. Nothing when none
/// is near.
[[nodiscard]] std::optional<std::string> nearest(std::string_view name,
                                                 std::span<const std::string> known);

}  // namespace reef::runtime
