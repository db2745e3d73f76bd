// What --input accepts: FILE, NAME=FILE, SHAPExTYPE=@FILE, NAME=SHAPExTYPE=@FILE.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/element_type.h"
#include "reef/base/result.h"

namespace reef::tool {

/// Raw bytes in C order, little endian.
struct RawLayout {
    std::vector<std::int64_t> shape;
    ElementType type = ElementType::uint8;
    friend bool operator==(const RawLayout&, const RawLayout&) = default;
};

struct InputSpec {
    std::string name;  ///< graph input's name, or inK; empty: the next one in order
    std::string path;  ///< "-" is standard input
    std::optional<RawLayout> raw;
    friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

/// "1x224x224x3xu8", "f32" for a scalar.
[[nodiscard]] Result<RawLayout> parse_raw_layout(std::string_view text);

/// `names` are the graph's inputs, which may hold '=' themselves. A text with '=' that names no
/// input is a path when such a file exists. Errors: bad_argument.
[[nodiscard]] Result<InputSpec> parse_input_spec(std::string_view text,
                                                 std::span<const std::string> names);

/// K of "inK" when K is below `count`.
[[nodiscard]] std::optional<std::size_t> input_position(std::string_view name, std::size_t count);

}  // namespace reef::tool
