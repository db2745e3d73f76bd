// The driver: an Edge TPU on a USB bus, started and running programs.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reef/base/sha256.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_memory.h"
#include "reef/edgetpu/registers.h"
#include "reef/edgetpu/run_watch.h"
#include "reef/edgetpu/transfers.h"
#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

// -- Firmware -------------------------------------------------------------------------------------

/// Where a firmware was found.
struct Firmware {
    std::vector<std::byte> bytes;
    std::string origin;  ///< a path, or "PATH at byte N" inside a vendor library
    bool known = false;  ///< its SHA-256 is that of the single-endpoint firmware
};
/// The first of: `path` if it is not empty, a firmware or a vendor's library in which one is found
/// by its digest; $REEF_EDGETPU_FIRMWARE, the same; apex_latest_single_ep.bin in
/// $XDG_DATA_HOME/reef (~/.local/share/reef), /usr/local/share/reef, /usr/share/reef and
/// /lib/firmware/google; an installed libedgetpu.so.1, in which it is found by its digest. Reef
/// ships no firmware. Errors: not_found with all places; bad_input for a file that cannot be one.
[[nodiscard]] Result<Firmware> find_firmware(const std::string& path = {});
/// What else helps where a simulated stick has none.
inline constexpr std::string_view simulated_firmware_hint =
    "; or let the simulated stick have its firmware from the start: REEF_USB_STATE=ready";
/// What to do about a firmware that is not known. The driver warns of it and sends it all the same.
inline constexpr std::string_view known_firmware_hint =
    "use apex_latest_single_ep.bin, or the library of libedgetpu1-std";
/// The known firmware inside another file, if it is there.
[[nodiscard]] std::optional<std::size_t> find_known_firmware(Bytes file);

// -- Programs -------------------------------------------------------------------------------------

/// A package made ready for a device: addresses in place, transfers and layouts planned. May be
/// used on several devices.
class Program {
  public:
    /// Errors: unsupported for models split over several chips and for caching executables whose
    /// hints are not complete; those of plan_transfers, with_base_addresses and
    /// OutputUnpacker::prepare.
    [[nodiscard]] static Result<std::shared_ptr<const Program>> prepare(const Package& package);

    [[nodiscard]] const std::vector<Layer>& inputs() const { return main_.executable.inputs; }
    [[nodiscard]] const std::vector<Layer>& outputs() const { return main_.executable.outputs; }
    [[nodiscard]] std::uint64_t token() const { return token_; }

  private:
    friend class Device;
    friend class Runner;
    struct Part {
        Executable executable;
        TransferPlan plan;
        std::vector<std::vector<std::byte>> bitstreams;  ///< with addresses
    };
    static Result<Part> prepare_part(const Executable& executable);

    /// Whether caching sends the same bytes. Any thread.
    [[nodiscard]] bool caches_as(const Program& other) const;
    [[nodiscard]] const Sha256& cached_content() const;

    /// The hints are not all there is: the chip asks for the rest by events.
    [[nodiscard]] bool asks() const { return !main_.plan.complete; }

    std::optional<Part> caching_;
    Part main_;
    std::vector<OutputUnpacker> unpackers_;
    std::vector<std::size_t> tensor_bytes_;  ///< of the inputs
    std::uint64_t token_ = 0;
    std::optional<ParameterRows> cached_rows_;  ///< that caching fills
    /// Of what caching sends: computed when another program of the same token is about.
    mutable std::once_flag content_known_;
    mutable Sha256 cached_content_{};
};

// -- Device ---------------------------------------------------------------------------------------

/// The vendor's performance levels: clocks of the tensor engine of 62.5, 125, 250 (the throttled
/// one) and 500 MHz.
enum class Performance : std::uint8_t { low, medium, high, max };

/// How what goes to the chip is told apart.
enum class Endpoints : std::uint8_t {
    single,    ///< instructions, inputs and parameters follow headers, all on endpoint 1
    multiple,  ///< each has an endpoint of its own, 1 to 3, without headers
};

struct DeviceOptions {
    std::string port;  ///< as in DeviceInfo; empty: the first stick
    Performance performance = Performance::max;
    Endpoints endpoints = Endpoints::single;
    std::string firmware;  ///< see find_firmware
    std::string place{};   ///< of errors; empty: "edgetpu:usb:PORT"
    Milliseconds start_deadline{6000};
    Milliseconds run_deadline{10000};
};

using edgetpu::RunWatch;

/// Of one run.
struct RunLimits {
    std::optional<Milliseconds> deadline{};  ///< in place of DeviceOptions::run_deadline
    const RunWatch* watch = nullptr;
};

struct DeviceCounters {
    std::uint64_t runs = 0;
    std::uint64_t parameter_loads = 0;
    std::uint64_t evictions = 0;   ///< of parameters by another token, or in the same rows
    std::uint64_t recoveries = 0;  ///< restarts after a fault, of the start or of a run
};

/// One stick. Threads may share it: runs queue up. A run that fails leaves the device to be
/// restarted by the next: clear halt and chip reset over the registers; if that fails, bus reset,
/// firmware if the stick lost it, and start. open() climbs the same ladder once when the start
/// fails. What was tried is in the error of the last rung, with what failed first.
class Device {
  public:
    /// Errors: device_missing, device_denied with what gives access, device_failed with the
    /// phase, the transfer and what was tried; those of find_firmware for a stick without.
    [[nodiscard]] static Result<std::unique_ptr<Device>> open(std::shared_ptr<Bus> bus,
                                                              const DeviceOptions& options);
    /// Stops the chip and closes, as far as the device still answers.
    ~Device();

    /// One inference. Tensors as Program::inputs() and outputs() have them. Sends parameters,
    /// unless they are in the chip; then the program. Allocates nothing once a program has run.
    /// Errors: bad_argument for tensors of the wrong number or size, or when start() was called
    /// without finish(); device_failed, device_missing with the transfer and what was awaited.
    /// A run that is ended by its watch is lost as by a fault: the next one restarts the chip.
    [[nodiscard]] Status run(const std::shared_ptr<const Program>& program,
                             std::span<const Bytes> inputs, std::span<const MutableBytes> outputs,
                             const RunLimits& limits = {});
    /// Wakes a run that waits for the device, so that it asks its watch. Any thread.
    void interrupt();

    /// The halves of run(): the next input travels while the chip works on the one before. Up to
    /// two inferences may be under way; finish() waits for the oldest. `inputs` are free when
    /// start() returns. A fault loses all that are under way: each finish() then returns it. A
    /// device that swallows output bytes is noticed unless the next inference's first transfer has
    /// exactly as many; run() always notices. For one thread.
    [[nodiscard]] Status start(const std::shared_ptr<const Program>& program,
                               std::span<const Bytes> inputs);
    [[nodiscard]] Status finish(std::span<const MutableBytes> outputs);

    struct Progress {
        bool moved = false;     ///< a transfer has ended
        bool complete = false;  ///< finish() does not wait
        int interrupts = 0;     ///< of the chip, since the inference began: each ends an executable
    };
    /// Waits for the end of one transfer of the oldest inference, for that long at most: for a
    /// debugger, who may hold the chip for longer than any deadline. Errors: as finish().
    [[nodiscard]] Result<Progress> advance(Milliseconds most);

    [[nodiscard]] Result<std::uint64_t> read_register(const RegisterInfo& info);
    [[nodiscard]] Status write_register(const RegisterInfo& info, std::uint64_t value);

    [[nodiscard]] const std::string& port() const { return port_; }
    /// Never waits for a run. Any thread.
    [[nodiscard]] DeviceCounters counters() const;

  private:
    struct State;
    class Turns;
    class Turn;
    Device(std::shared_ptr<Bus> bus, const DeviceOptions& options);
    /// `patience`: for a stick that is not on the bus.
    [[nodiscard]] Status bring_up(Milliseconds patience);
    [[nodiscard]] Status start_engines();
    [[nodiscard]] Status restart_chip();
    [[nodiscard]] bool may_recover(const Error& error) const;
    [[nodiscard]] Status climb(const Error& reason, std::string_view before, Milliseconds patience);
    [[nodiscard]] Status ready();
    void stop();
    [[nodiscard]] std::string place() const;
    [[nodiscard]] Status start_locked(const std::shared_ptr<const Program>& program,
                                      std::span<const Bytes> inputs, const RunLimits& limits);
    [[nodiscard]] Status finish_locked(std::span<const MutableBytes> outputs);
    [[nodiscard]] Status report_descriptors_for(const Program& program);
    [[nodiscard]] Status lost(Status&& failed);
    void describe_once(const std::shared_ptr<const Program>& program);

    std::shared_ptr<Bus> bus_;
    DeviceOptions options_;
    std::string port_;
    std::unique_ptr<Turns> turns_;
    std::unique_ptr<State> state_;
};

}  // namespace reef::edgetpu::usb
