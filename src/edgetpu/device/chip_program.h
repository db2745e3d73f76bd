// A compiled operator, read for any Edge TPU.
#pragma once

#include <memory>

#include "reef/edgetpu/device/layer_binding.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/runtime/device.h"

namespace reef::edgetpu {

struct ChipProgram final : runtime::Program {
    Package package;
    std::shared_ptr<const usb::Program> driven;  ///< null for watched chips, which have no driver
    LayerBinding binding;
};

}  // namespace reef::edgetpu
