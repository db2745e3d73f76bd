// What drives a family of devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"
#include "reef/runtime/device.h"
#include "reef/runtime/options.h"
#include "reef/runtime/uri.h"

namespace reef::runtime {

/// What the devices of a backend can, or are, besides running programs.
enum class Capability : std::uint8_t {
    computes,   ///< outputs are those of the inputs; else the device only moves bytes
    simulated,  ///< no hardware: everything in it can be seen
    strict,     ///< an option `strict` watches what programs do (Watched)
    debug,      ///< can be held, and looked into
    record,     ///< traffic with it can be written down
    layers,     ///< tensors inside compiled operators can be gathered
};
/// "computes", "simulated", ...
[[nodiscard]] std::string_view to_string(Capability capability);

enum class Naming : std::uint8_t { none, optional, required };

/// One way to reach devices of a family: "sim", say.
struct BackendInfo {
    std::string backend;   ///< empty: the family's only one, which its URIs do not name
    std::string sentence;  ///< what it is
    Naming naming = Naming::none;
    std::string name_means{};  ///< in capitals: what a device's name is, "PORT"
    std::vector<Capability> capabilities{};
    /// Devices that can be opened once in a process: its sessions share them unless they are given
    /// a DevicePool.
    bool one_per_process = false;

    [[nodiscard]] bool has(Capability capability) const;
};

/// A device that is there.
struct PresentDevice {
    std::string uri;
    std::string state;    ///< "ready", or what it lacks
    std::string details;  ///< what else identifies it
};

/// A part of the system that a driver looked at for devices.
struct SearchedBus {
    std::string name;                      ///< "pci", ...
    std::optional<std::string> problem{};  ///< why it cannot be read
};

struct Enumeration {
    std::vector<PresentDevice> devices;
    std::vector<SearchedBus> buses{};
};

/// Why operators are where they are, as clauses: in placements and errors.
struct PlacementWords {
    std::string taken;  ///< of what the devices run: "compiled for the ..."
    std::string left;   ///< of what they leave to the CPU
    std::string chip;   ///< who a program is for: "the ..."
    std::string make;   ///< how a model is made for it: "compile it for the ..."
    /// What to do with a program that was given to the CPU: "run it with `device` FAMILY:BACKEND".
    /// Names of options stand between backquotes, so that front ends can put their own there.
    std::string elsewhere;
};

/// Drivers are made once and live as long as their registry; every function may be called by
/// several threads.
class Driver {
  public:
    Driver() = default;
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    virtual ~Driver() = default;

    [[nodiscard]] virtual std::string_view family() const = 0;
    [[nodiscard]] virtual std::string_view sentence() const = 0;
    /// In the order in which they are listed.
    [[nodiscard]] virtual std::span<const BackendInfo> backends() const = 0;
    [[nodiscard]] virtual std::span<const OptionInfo> options() const = 0;
    [[nodiscard]] virtual const PlacementWords& words() const = 0;

    /// Devices that are there now, those without hardware included.
    [[nodiscard]] virtual Enumeration enumerate() const = 0;

    /// Whether the operator holds a program for this driver's devices.
    [[nodiscard]] virtual bool is_compiled(const model::Operator& op) const = 0;

    /// Reads the operator's program for a device of that backend, before any is opened.
    /// Precondition: is_compiled(op). Errors: bad_input for what no right program is, unsupported
    /// by name.
    [[nodiscard]] virtual Result<std::shared_ptr<const Program>> prepare(
        const DeviceUri& device, const OptionValues& options, const model::Subgraph& graph,
        const model::Operator& op) const = 0;

    /// `options` are checked, as options() says; `threads` are what the session may use of this
    /// machine's. Errors: device_missing, device_denied, device_failed; not_found for files.
    [[nodiscard]] virtual Result<std::shared_ptr<Device>> open(const DeviceUri& device,
                                                               const OptionValues& options,
                                                               int threads) const = 0;

    /// Whether sessions that name the same device share one that is opened so; else each has its
    /// own.
    [[nodiscard]] virtual bool shares(const DeviceUri& /*device*/,
                                      const OptionValues& /*options*/) const {
        return true;
    }

    /// Null when there is no such backend.
    [[nodiscard]] const BackendInfo* find_backend(std::string_view backend) const;
};

/// "FAMILY:BACKEND[:NAME]", as help and errors write it.
[[nodiscard]] std::string form_of(const Driver& driver, const BackendInfo& backend);

}  // namespace reef::runtime
