// Device URIs: how a device is named, whatever drives it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reef/base/result.h"

namespace reef::runtime {

/// Options as they are written: names and values, in order.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

/// FAMILY[:BACKEND[:NAME]][?KEY=VALUE[&KEY=VALUE...]], e.g. "cpu", "cpu?threads=4", or a family
/// with one of its backends and the name of one device there. Which families, backends and options
/// there are is the registry's matter (registry.h); what a name means is the driver's.
///
/// The name is everything from the second colon to the question mark and may hold colons. In names,
/// keys and values %XX stands for the byte XX (hexadecimal); a percent sign that no two hexadecimal
/// digits follow stands for itself.
struct DeviceUri {
    std::string family;     ///< lower-case letters, digits and "-"
    std::string backend;    ///< the same; empty: none is named
    std::string name;       ///< of one device; empty: none is named
    OptionTexts options{};  ///< each key once; values may be empty

    /// Errors: bad_argument, with what is wrong: an empty part, a character that families and
    /// backends do not have, an option without "=", a key that is empty or given twice.
    [[nodiscard]] static Result<DeviceUri> parse(std::string_view text);

    /// parse(text()) gives the same URI again, if the parts are such as parse() takes.
    [[nodiscard]] std::string text() const;
    /// Without the options: what names the device.
    [[nodiscard]] std::string device() const;

    friend bool operator==(const DeviceUri&, const DeviceUri&) = default;
};

}  // namespace reef::runtime
