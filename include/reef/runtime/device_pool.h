// Devices that sessions share.
#pragma once

#include <memory>
#include <string_view>

#include "reef/base/result.h"
#include "reef/runtime/driver.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {

/// Sessions that are given the same pool use one device together when their URIs name the same:
/// their runs queue up, and their models evict each other's parameters or, compiled together, stay
/// together. A URI without a name, of a backend whose devices are one_per_process, names one that
/// is open already, else the first. A device is as its first session opened it, and closes with its
/// last. May be used by several threads.
class DevicePool {
  public:
    DevicePool();
    DevicePool(const DevicePool&) = delete;
    DevicePool& operator=(const DevicePool&) = delete;
    ~DevicePool();

    /// That of sessions that are given none, for devices that are one_per_process.
    [[nodiscard]] static const std::shared_ptr<DevicePool>& of_process();

    /// The device, opened if nobody has it. Errors: those of Driver::open().
    [[nodiscard]] Result<std::shared_ptr<Device>> open(const Registry::Found& device,
                                                       const OptionValues& options, int threads);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::runtime
