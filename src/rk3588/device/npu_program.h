// A program that is read and checked, for any device of the driver.
#pragma once

#include "reef/runtime/device.h"
#include "rk3588/artifact/artifact.h"

namespace reef::rk3588 {

struct NpuProgram final : runtime::Program {
    Artifact artifact;
};

}  // namespace reef::rk3588
