// Gives the operators of a graph to a session's devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/placer.h"
#include "reef/graph/run_control.h"
#include "reef/runtime/device_pool.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"

namespace reef::runtime {

/// A device that a session asks for, with its checked options.
struct ChosenDevice {
    Registry::Found found;
    OptionValues options;
};

/// Those of the session's options but the CPU, in their order. Errors: those of Registry::find()
/// and OptionValues::check().
[[nodiscard]] Result<std::vector<ChosenDevice>> choose_devices(const SessionOptions& options,
                                                               const Registry& registry);

/// Their URIs, as errors name them: "a or b".
[[nodiscard]] std::string names_of(const std::vector<ChosenDevice>& devices);

/// Takes the operators that are compiled for its device, which it opens when the first comes.
class DevicePlacer final : public graph::Placer {
  public:
    DevicePlacer(ChosenDevice chosen, std::shared_ptr<DevicePool> pool, int threads,
                 const graph::RunControl& control);

    /// Errors: those of the driver.
    [[nodiscard]] Result<graph::Placed> place(const graph::OperatorView& op) override;
    [[nodiscard]] bool has(const graph::OperatorView& op) const override;

    [[nodiscard]] const ChosenDevice& chosen() const { return chosen_; }
    /// Null: it has no operator.
    [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }

  private:
    ChosenDevice chosen_;
    std::shared_ptr<DevicePool> pool_;
    int threads_;
    const graph::RunControl& control_;
    std::shared_ptr<Device> device_;
};

}  // namespace reef::runtime
