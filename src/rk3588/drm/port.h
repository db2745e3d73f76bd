// The NPU behind a kernel driver: buffers that both see, and submissions that are waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/drm/kernel.h"
#include "rk3588/sim/switches.h"

namespace reef::rk3588::drm {

/// Memory of the kernel's that this process has mapped.
struct Buffer {
    MutableBytes bytes;
    std::uint32_t address = 0;  ///< for the NPU
    std::uint32_t handle = 0;
    std::uint64_t object = 0;  ///< the vendor driver's second handle
    std::uint64_t sram = 0;    ///< so many first bytes were asked to be in the chip's SRAM, and are
};

/// One task of a chain.
struct SubmittedTask {
    std::uint32_t address = 0;
    std::uint32_t words = 0;  ///< tail included
    std::uint32_t blocks = 0;
};

struct Submission {
    /// What each core runs, one task after the other: first cores have at least as many tasks as
    /// later ones. What one core writes, another neither reads nor writes.
    std::span<const std::span<const SubmittedTask>> cores;
    /// Buffers that the tasks read, and those that they write, and read, too: none in both.
    std::span<const Buffer*const> reads, writes;
    std::chrono::milliseconds time_out{0};  ///< to be given: above 0, longest_time_out at most
};

/// What the vendor's driver, which has 32 bits for it, does not take for forever: 24 days.
inline constexpr std::chrono::milliseconds longest_time_out{
    std::numeric_limits<std::int32_t>::max()};

/// Cores that a submission may have.
inline constexpr std::size_t most_cores = spec::core_count;

/// How tasks are started: each by the kernel, or the first one, which its tail chains to the next.
enum class Start : std::uint8_t { each_task, chain };

/// One open node. Not for several threads at once.
class Port {
  public:
    Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    virtual ~Port() = default;

    /// "DRIVER at NODE".
    [[nodiscard]] virtual std::string name() const = 0;
    /// The path of the node.
    [[nodiscard]] virtual const std::string& node() const = 0;
    /// Whole pages, not cleared, the first `sram` bytes of them in the chip's SRAM. Errors:
    /// device_failed, also for addresses beyond 32 bits, and where the kernel has not so much SRAM;
    /// unsupported for SRAM where the driver gives none to anybody.
    [[nodiscard]] virtual Result<Buffer> allocate(std::uint64_t bytes, std::uint64_t sram = 0) = 0;
    virtual void release(const Buffer& buffer) = 0;
    /// What this process wrote is the NPU's to read, and the other way round: of the first `bytes`,
    /// or of more where the driver cannot tell them apart.
    [[nodiscard]] virtual Status to_device(const Buffer& buffer, std::uint64_t bytes) = 0;
    [[nodiscard]] virtual Status from_device(const Buffer& buffer, std::uint64_t bytes) = 0;
    [[nodiscard]] Status to_device(const Buffer& buffer) {
        return to_device(buffer, buffer.bytes.size());
    }
    [[nodiscard]] Status from_device(const Buffer& buffer) {
        return from_device(buffer, buffer.bytes.size());
    }
    /// Room for submissions of so many tasks and buffers: submit() of no more allocates nothing.
    [[nodiscard]] virtual Status reserve(std::size_t tasks, std::size_t buffers) = 0;
    /// Returns when all tasks have ended. Errors: timed_out and device_failed with the task, its
    /// registers and the interrupts that came, after which the NPU has been reset; unsupported for
    /// tasks that the driver does not wait for.
    [[nodiscard]] virtual Status submit(const Submission& submission) = 0;
    /// Resets after failures.
    [[nodiscard]] virtual std::uint64_t resets() const = 0;
};

/// Simulated cores without a kernel in front of them. The tasks of each core are chained.
[[nodiscard]] std::unique_ptr<Port> make_sim_port(const sim::Switches& switches);

enum class KernelDriver : std::uint8_t { rknpu, rocket };
[[nodiscard]] std::string_view name_of(KernelDriver driver);

/// Nodes that this driver serves. A node that cannot be opened is not among them.
[[nodiscard]] std::vector<std::string> find_nodes(Kernel& kernel, KernelDriver driver);

/// `node`: empty for the first one that is found. Errors: device_missing, device_denied,
/// device_failed, each with what to do; unsupported for versions whose structs are not known.
[[nodiscard]] Result<std::unique_ptr<Port>> open_port(std::shared_ptr<Kernel> kernel,
                                                      KernelDriver driver, const std::string& node,
                                                      Start start);

}  // namespace reef::rk3588::drm
