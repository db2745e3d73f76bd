// Session: a model on a device. Places every operator, runs it, and says what ran where and why.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/cpu/placer.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"
#include "reef/runtime/chips.h"

namespace reef::runtime {

/// A device URI: "cpu", "edgetpu:sim[:name]", "edgetpu:usb[:port]", "rk3588:rocket[:/dev/...]". No
/// device is ever replaced by another one unasked.
struct DeviceUri {
    std::string family;   ///< "cpu", "edgetpu", "rk3588"
    std::string backend;  ///< "sim", "usb", ...; empty for cpu
    std::string rest;     ///< what follows the second colon

    [[nodiscard]] static Result<DeviceUri> parse(std::string_view text);
    [[nodiscard]] std::string text() const;
};

/// Where one operator runs, and why there.
struct PlacedOperator {
    std::size_t index = 0;
    std::string name;    ///< operator name
    std::string device;  ///< device URI
    std::string kernel;  ///< what runs it there
    std::string reason;  ///< one clause
};

struct SessionOptions {
    std::string device = "cpu";
    cpu::KernelSet kernels = cpu::KernelSet::fast;
    cpu::Arithmetic arithmetic = cpu::Arithmetic::tflite;  ///< of the device cpu
    int threads = 1;  ///< of the CPU floor and of a simulated chip, 1 to 256
    bool keep_all_tensors = false;
    /// Fail when an operator would run on the CPU.
    bool require_npu = false;
    /// Of edgetpu:sim. With `strict` the simulator is used without the driver.
    edgetpu::SimulatorOptions simulator{};
    // Of edgetpu:usb; refused elsewhere.
    std::string firmware{};     ///< for a stick that has none; see usb::find_firmware
    bool maximum_clock = true;  ///< else the throttled one
    /// Null: a stick is shared with the other sessions of the process, a simulated chip with none.
    std::shared_ptr<Chips> chips{};
};

class Session {
  public:
    /// Errors: bad_argument (not a device URI, or an option that means nothing on that device),
    /// device_missing (no such device, or none that this build drives), device_denied, unsupported
    /// (an operator that the device cannot run, by name), not_found (firmware), device_failed.
    [[nodiscard]] static Result<Session> open(const model::Model& model,
                                              const SessionOptions& options);
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();

    [[nodiscard]] const model::Subgraph& graph() const;
    [[nodiscard]] std::size_t input_count() const;
    [[nodiscard]] std::size_t output_count() const;
    /// Inputs keep what is written to them, outputs what the last run gave, on every device: as
    /// graph::Executor says.
    [[nodiscard]] MutableBytes input(std::size_t i);
    [[nodiscard]] Bytes output(std::size_t i) const;
    [[nodiscard]] Bytes tensor(model::TensorIndex index) const;
    [[nodiscard]] Status run(graph::RunObserver* observer = nullptr);
    void reset_state();

    [[nodiscard]] const std::vector<PlacedOperator>& placements() const;
    [[nodiscard]] const graph::MemoryReport& memory() const;
    /// What the last run's compiled programs did that right ones would not, if
    /// SessionOptions::simulator.strict.
    [[nodiscard]] std::span<const edgetpu::Finding> findings() const;
    /// Of the Edge TPU, if the driver runs one: the session's runs and those of others that share
    /// it, since it was opened.
    [[nodiscard]] std::optional<edgetpu::usb::DeviceCounters> chip_counters() const;

  private:
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::runtime
