// Operators on devices among the kernels of an executor.
#pragma once

#include <memory>

#include "graph/kernel.h"
#include "reef/graph/device_operator.h"

namespace reef::graph {

/// Hands an operator's tensors to its device.
[[nodiscard]] std::unique_ptr<Kernel> device_kernel(std::unique_ptr<DeviceOperator> on_device,
                                                    const OperatorView& op);

}  // namespace reef::graph
