// What a host and a chip's device say to each other: recorded, shown, and done again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// How a driver treats its device.
struct DriverSettings {
    bool standard_clock = false;      ///< a slower one, which heats less
    bool multiple_endpoints = false;  ///< each kind of transfer on one of its own, where there are
    std::string firmware{};           ///< path; for a device that has none
};

/// Runs of a compiled model's chip operators, one after the other; what comes before and between
/// them is computed on the CPU.
struct TrafficRuns {
    const model::Model& model;
    std::string place;  ///< of errors about the model: its file
    /// One of each of the graph's inputs; called when the model is known to be right.
    std::function<Result<std::vector<std::vector<std::byte>>>(const model::Subgraph&)> inputs;
    unsigned runs = 2;  ///< state goes on from run to run
    DriverSettings driver{};
};

/// Accesses to registers of a driver that starts and stops a device, against recorded ones.
struct StartAgreement {
    std::size_t recorded = 0, driven = 0;
    std::size_t same = 0;         ///< in order, direction, address and width
    std::size_t same_values = 0;  ///< of those
    Status done;                  ///< of starting the device

    [[nodiscard]] bool whole() const {
        return done && same_values == recorded && driven == recorded;
    }
};

struct Replayed {
    /// The first thing that the driver did otherwise, with both sides; or how a run failed.
    Status as_recorded;
};

/// A recording.
class Traffic {
  public:
    Traffic() = default;
    Traffic(const Traffic&) = delete;
    Traffic& operator=(const Traffic&) = delete;
    virtual ~Traffic() = default;

    [[nodiscard]] virtual std::size_t items() const = 0;
    [[nodiscard]] virtual std::size_t payload_bytes() const = 0;
    /// More than a device that was opened and closed.
    [[nodiscard]] virtual Result<bool> holds_transfers() const = 0;
    /// PATH with the items and PATH.bin with their payloads, both or neither as far as the system
    /// allows.
    [[nodiscard]] virtual Status write(const std::string& path) const = 0;
    /// What was said, one item a line, without its timing and without addresses: equal for drivers
    /// that do the same.
    [[nodiscard]] virtual Result<std::vector<std::string>> view() const = 0;

    /// Runs the model on a device that answers as the recorded one did, when the driver does what
    /// the recorded one did. Errors: those of the model and of reading the recording.
    [[nodiscard]] virtual Result<Replayed> replay(const TrafficRuns& runs) const = 0;
    /// Starts and stops such a device. Errors: those of reading the recording.
    [[nodiscard]] virtual Result<StartAgreement> start(const DriverSettings& driver) const = 0;
};

struct RecordedRuns {
    std::unique_ptr<Traffic> traffic;
    Status done;  ///< of the runs; the traffic is that up to the failure
};

/// Of a family of chips, enrolled as a part of it.
class TrafficRecorder : public Part {
  public:
    /// URI of the device that is recorded when none is named.
    [[nodiscard]] virtual std::string_view device() const = 0;
    /// Errors: bad_argument for a device without such traffic; bad_input for a model that is not
    /// compiled; those of runtime::Session::open() before a device is; those of its inputs.
    [[nodiscard]] virtual Result<RecordedRuns> record(const std::string& device,
                                                      const TrafficRuns& runs) const = 0;
    /// What write() wrote, or whatever else the chip's traffic is captured in.
    [[nodiscard]] virtual Result<std::unique_ptr<Traffic>> read(const std::string& path) const = 0;
};

}  // namespace reef::chip
