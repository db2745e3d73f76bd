// The two forms of reef inspect's output.
#pragma once

#include "inspect/report.h"
#include "outputs/console.h"
#include "outputs/json_output.h"

namespace reef::tool {

struct InspectDetail {
    bool all = false;      ///< every operator, not only the first ones
    bool tensors = false;  ///< the table of tensors too
};

void print_inspect_text(Console& console, const ModelReport& report, const InspectDetail& detail);
[[nodiscard]] Json inspect_json(const ModelReport& report);

}  // namespace reef::tool
