// Tensors inside compiled programs, as files and beside a plain model's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison.h"
#include "console.h"
#include "json_output.h"
#include "model_session.h"
#include "reef/base/npy.h"
#include "reef/edgetpu/layer_dump.h"

namespace reef::tool {

/// One layer of a program, and the plain model's tensor that it is.
struct DumpedLayer {
    edgetpu::GatheredLayer layer;
    std::optional<edgetpu::LayerMatch> match;
    /// Of the file: "t0031", by the plain model's tensor index, or the layer's own.
    std::string name;
    std::string plain_name;  ///< of the plain model's tensor, and its operator
    Array tensor;            ///< as the plain model's, if there is one; empty with a problem
};

struct LayerDump {
    std::vector<DumpedLayer> layers;
    /// Operators of the plain model on the chip, with weights, that no layer is: "CONV_2D NAME".
    std::vector<std::string> without_layer;
};

/// The session keeps all tensors and has run. `plain` may be null.
[[nodiscard]] Result<LayerDump> dump_layers(const OpenModel& opened, const model::Model* plain);

/// Those that could be gathered.
[[nodiscard]] NamedArrays arrays_of(const LayerDump& dump);

/// How many were written into the folder, and those that were not with their reasons.
void print_layers_text(Console& console, const LayerDump& dump, const std::string& folder);
[[nodiscard]] Json layers_json(const LayerDump& dump);

}  // namespace reef::tool
