// The chips of this build, as texts of verbs name them.
#pragma once

#include <string>
#include <string_view>

#include "reef/base/result.h"
#include "reef/model/graph.h"
#include "reef/runtime/chips.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

using runtime::chip_name;
using runtime::chip_names;
using runtime::device_for;
using runtime::family_of;
using runtime::is_compiled;

/// Errors of a compiled model that is none, and of a chip without the part.
[[nodiscard]] Error not_compiled();
[[nodiscard]] Error no_part(std::string_view family, std::string_view verb);

/// What the chip that the model is compiled for has for a verb. Errors: bad_input for a plain
/// model, unsupported for a chip without it.
template <class Part>
[[nodiscard]] Result<const Part*> part_for(const model::Model& compiled, std::string_view verb) {
    const std::string_view family = family_of(compiled);
    if (family.empty()) return std::unexpected(not_compiled());
    if (const auto* part = runtime::Registry::of_process().part<Part>(family)) return part;
    return std::unexpected(no_part(family, verb));
}

/// Puts the first family that has a simulated device in place of each "CHIP", for examples:
/// "reef run net_CHIP.tflite --device CHIP:sim".
[[nodiscard]] std::string with_example_chip(std::string_view text);

}  // namespace reef::tool
