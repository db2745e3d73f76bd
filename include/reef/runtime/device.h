// What a session needs of a device, whatever chip it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reef/base/result.h"
#include "reef/graph/device_operator.h"
#include "reef/graph/run_control.h"

namespace reef::runtime {

/// What a device has done since it was opened, for all sessions that share it.
struct DeviceCounters {
    std::uint64_t runs = 0;             ///< of compiled operators
    std::uint64_t parameter_loads = 0;  ///< of an operator's constants into the device
    std::uint64_t evictions = 0;        ///< of them, by another operator's
    std::uint64_t recoveries = 0;       ///< restarts after a fault
    friend bool operator==(const DeviceCounters&, const DeviceCounters&) = default;
};

/// A compiled operator, read and made ready for any device of its driver; what is in it is the
/// driver's matter. It holds what it needs of the model.
class Program {
  public:
    Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    virtual ~Program() = default;
};

/// One device that is open. Sessions may share it: load() and the runs of its operators may come
/// from several threads, and queue up where the device does one thing at a time.
///
/// What a device can beyond running programs are interfaces that it has or has not, such as
/// Watched: ask with as<Watched>().
class Device {
  public:
    Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    /// The URI of this one device, with its name, without options: "family:backend:name".
    [[nodiscard]] virtual std::string uri() const = 0;

    /// Makes a program ready to run here. The operator holds the device and the program; `control`
    /// outlives it, and its deadline takes the place of the device's own. Its kernel() is what
    /// placements say.
    /// Precondition: the program is of this device's driver.
    [[nodiscard]] virtual Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const Program> program, const graph::RunControl& control) = 0;

    /// Wakes what waits for the device, so that it looks at its run control. Any thread.
    virtual void interrupt() {}

    /// Never waits for a run. Nothing: this device does not count.
    [[nodiscard]] virtual std::optional<DeviceCounters> counters() const { return std::nullopt; }

    /// The device's interface of that type, or null.
    template <class Interface>
    [[nodiscard]] Interface* as() {
        return dynamic_cast<Interface*>(this);
    }
    template <class Interface>
    [[nodiscard]] const Interface* as() const {
        return dynamic_cast<const Interface*>(this);
    }
};

/// What a program did that a right one would not, as a watched device saw it.
struct Finding {
    using Value = std::variant<std::uint64_t, std::string>;
    std::string kind;                                      ///< an identifier
    std::string message;                                   ///< the finding as a sentence
    std::vector<std::pair<std::string, Value>> details{};  ///< its parts, by name
};

/// A device that watches what programs do.
class Watched {
  public:
    virtual ~Watched() = default;
    /// Of the runs since forget_findings().
    [[nodiscard]] virtual std::vector<Finding> findings() const = 0;
    virtual void forget_findings() = 0;
};

}  // namespace reef::runtime
