// The debugger of a stick, over the registers of its scalar core.
#pragma once

#include <memory>
#include <span>

#include "reef/edgetpu/debugger.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {

/// Opens and starts a stick, and halts its scalar core when it is told to. The package, if there is
/// one, is what the stick runs: its words are listed and can be stopped at. With `inputs` (as of
/// Device::run()) the first step or continue sends it, as an inference of the driver whose
/// transfers the debugger moves on; without, the debugger sends nothing but register transfers.
/// What registers do not tell is refused: memories, loop nests, queues, the tiles' counters, breaks
/// at writes, steps of layers and rounds. Errors: those of Device::open, and of Program::prepare
/// with inputs.
[[nodiscard]] Result<std::unique_ptr<Debugger>> stick_debugger(std::shared_ptr<Bus> bus,
                                                               const DeviceOptions& options,
                                                               const Package* package,
                                                               std::span<const Bytes> inputs = {});

}  // namespace reef::edgetpu::usb
