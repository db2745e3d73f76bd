// Words for the parts of a model, shared by the verbs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outputs/json_output.h"
#include "reef/base/text.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// "1x224x224x3 u8".
[[nodiscard]] std::string shape_and_type(const model::Tensor& tensor);

/// "scale 0.0078125, zero point 128", "16 scales from 0.001 to 0.02 along axis 0"; empty when the
/// tensor is not quantised.
[[nodiscard]] std::string quantization_text(const model::Tensor& tensor);

/// Tensor types whose elements decode to numbers: scale * (q - zero_point) for a per-tensor
/// quantisation, the element itself otherwise.
[[nodiscard]] std::optional<std::vector<double>> real_values(const model::Tensor& tensor,
                                                             Bytes bytes);

/// {"tensor": 3, "name": ..., "shape": [...], "type": ..., "quantization": {...}}
[[nodiscard]] Json tensor_json(const model::Subgraph& graph, model::TensorIndex index);

/// The last part of a path.
[[nodiscard]] std::string_view file_name(std::string_view path);

}  // namespace reef::tool
