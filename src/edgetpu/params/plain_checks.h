// What a plain model must be for its numbers to be read, and to be a compiled one's.
#pragma once

#include <optional>
#include <string>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// Refuses constants in sparse form: their bytes are fewer than the shape says.
[[nodiscard]] Status check_dense(const model::Model& plain);

/// Refuses scales of bytes that are no positive numbers: factors are made of their inverses.
[[nodiscard]] Status check_scales(const model::Model& plain);

/// Inputs or outputs of other numbers, types or shapes than the compiled model's, in words;
/// nothing: they are the same.
[[nodiscard]] std::optional<std::string> other_interface(const model::Model& compiled,
                                                         const model::Model& plain);

}  // namespace reef::edgetpu
