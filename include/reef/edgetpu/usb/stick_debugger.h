// The debugger of a stick, over the registers of its scalar core.
#pragma once

#include <memory>

#include "reef/edgetpu/debugger.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {

/// Opens and starts a stick, and halts its scalar core when it is told to. The package, if there is
/// one, is what the stick is thought to run: its words are listed and can be stopped at; the
/// debugger sends nothing but register transfers. What registers do not tell is refused: memories,
/// loop nests, queues, the tiles' counters, breaks at writes, steps of layers and rounds.
/// Errors: those of Device::open.
[[nodiscard]] Result<std::unique_ptr<Debugger>> stick_debugger(std::shared_ptr<Bus> bus,
                                                               const DeviceOptions& options,
                                                               const Package* package);

}  // namespace reef::edgetpu::usb
