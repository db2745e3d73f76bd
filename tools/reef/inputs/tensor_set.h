// Named tensors from a file, a folder or a run: the sides of a comparison.
#pragma once

#include <string>
#include <string_view>

#include "inputs/model_session.h"
#include "reef/base/npy.h"
#include "reef/base/result.h"

namespace reef::tool {

/// A .npy file (one array with an empty name), a .npz file, or the .npy files of a folder sorted by
/// name. Errors: bad_input when there is nothing to compare.
[[nodiscard]] Result<NamedArrays> load_tensor_set(const std::string& path);

/// Every computed tensor of one run, in execution order, as "tNNNN" by its TFLite tensor index.
/// Precondition: the session keeps all tensors and has run.
[[nodiscard]] NamedArrays computed_tensors(const runtime::Session& session);

/// The graph's outputs after a run, as "out0" and so on.
[[nodiscard]] NamedArrays graph_outputs(const runtime::Session& session);

/// "cpu", "cpu,kernels=reference", "cpu,arithmetic=FAMILY", "cpu,threads=2". Errors: bad_argument.
[[nodiscard]] Result<DeviceOptions> parse_device_options(std::string_view text);

}  // namespace reef::tool
