// Which chips of this build a model is for, and what they are called.
#pragma once

#include <string>
#include <string_view>

#include "reef/model/graph.h"

namespace reef::runtime {

/// The family of the chip whose program the model holds; empty for a plain model.
[[nodiscard]] std::string_view family_of(const model::Model& model);
[[nodiscard]] inline bool is_compiled(const model::Model& model) {
    return !family_of(model).empty();
}

/// Where the model can run without hardware: a simulated device of its chip, or "cpu".
[[nodiscard]] std::string device_for(const model::Model& model);

/// For people; the family where nobody knows better.
[[nodiscard]] std::string chip_name(std::string_view family);
/// All whose models can be inspected: "A or B".
[[nodiscard]] std::string chip_names();

}  // namespace reef::runtime
