// Tensors to .npy files in a folder, all of them or none.
#pragma once

#include <string>

#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// A copy of the bytes with the tensor's shape and type.
[[nodiscard]] Array array_of(const model::Tensor& tensor, Bytes bytes);

/// Writes NAME.npy for each array, over files of that name. The folder is made when it does not
/// exist (its parent must). After an error the folder is as it was, or does not exist if it did
/// not.
[[nodiscard]] Status write_arrays(const std::string& folder, const NamedArrays& arrays);

}  // namespace reef::tool
