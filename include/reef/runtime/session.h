// Session: a model on devices. Places every operator, runs it, and says what ran where and why.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"
#include "reef/runtime/device.h"
#include "reef/runtime/device_pool.h"
#include "reef/runtime/options.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {

/// Where one operator runs, and why there.
struct PlacedOperator {
    std::size_t index = 0;
    std::string name;    ///< operator name
    std::string device;  ///< device URI, as it was asked for, without options
    std::string kernel;  ///< what runs it there
    std::string reason;  ///< one clause
};

/// A device to run on: a URI (uri.h), and options of its driver as values, which win over those in
/// the URI. Made of a URI's text alone, too.
struct DeviceChoice {
    std::string uri = "cpu";
    std::vector<Option> options{};

    DeviceChoice() = default;
    // A text is a whole choice, where devices are listed.
    DeviceChoice(std::string device) : uri(std::move(device)) {}
    DeviceChoice(std::string_view device) : uri(device) {}
    DeviceChoice(const char* device) : uri(device) {}
    DeviceChoice(std::string device, std::vector<Option> with)
        : uri(std::move(device)), options(std::move(with)) {}
};

struct SessionOptions {
    /// Asked in this order for every operator. The CPU runs what none of them takes; it need not be
    /// named, and alone it runs everything. No device is ever replaced by another one unasked.
    std::vector<DeviceChoice> devices = {"cpu"};
    cpu::KernelSet kernels = cpu::KernelSet::fast;
    /// Of a session on the CPU alone; null: TFLite's.
    const cpu::Arithmetic* arithmetic = nullptr;
    /// By operator of the first subgraph, whether `arithmetic` computes it and not TFLite's: those
    /// that a compiler left to the CPU are TFLite's. Empty: all.
    std::vector<bool> in_arithmetic = {};
    /// Of this machine, 1 to 256: the CPU's (as graph::ExecutorOptions says), and a simulated
    /// device's.
    int threads = 1;
    bool keep_all_tensors = false;
    /// Fail when an operator would run on the CPU.
    bool require_npu = false;
    /// How long a run may take; see Session::set_deadline().
    std::optional<std::chrono::milliseconds> deadline{};
    /// Null: devices of which a process has one are shared with its other sessions, the others with
    /// none.
    std::shared_ptr<DevicePool> pool{};
    /// Null: that of the process. Must outlive the session.
    const Registry* registry = nullptr;
};

/// Used by one thread at a time, but for cancel(), counters() and finished().
class Session {
  public:
    /// Errors: bad_argument (not a device URI, or an option that means nothing on that device),
    /// device_missing, device_denied, unsupported (an operator that the devices cannot run, by
    /// name), not_found (a file of an option), device_failed.
    [[nodiscard]] static Result<Session> open(const model::Model& model,
                                              const SessionOptions& options);
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    /// Cancels a run under way, and waits for its end.
    ~Session();

    [[nodiscard]] const model::Subgraph& graph() const;
    [[nodiscard]] std::size_t input_count() const;
    [[nodiscard]] std::size_t output_count() const;
    /// Inputs keep what is written to them, outputs what the last run gave, on every device: as
    /// graph::Executor says.
    /// NHWC bytes. Precondition: no run is under way.
    [[nodiscard]] MutableBytes input(std::size_t i);
    [[nodiscard]] Bytes output(std::size_t i) const;
    [[nodiscard]] Bytes tensor(model::TensorIndex index) const;

    /// One inference, on the calling thread. Errors: those of the operators, with their place;
    /// those of graph::RunControl::check(); bad_argument while another run is under way.
    [[nodiscard]] Status run(graph::RunObserver* observer = nullptr);

    // The halves of run(), so that the caller can do something else meanwhile.
    /// Begins an inference on a thread of the session's; the observer is called there. Errors:
    /// bad_argument while one is under way or not waited for.
    [[nodiscard]] Status start(graph::RunObserver* observer = nullptr);
    /// Waits for the inference that was started and gives its result, once. Errors: those of run();
    /// bad_argument when none was started.
    [[nodiscard]] Status wait();
    /// The same for that long at most; nothing: it goes on.
    [[nodiscard]] std::optional<Status> wait_for(std::chrono::milliseconds most);
    /// Whether wait() would not wait. Any thread.
    [[nodiscard]] bool finished() const;

    /// Ends the run under way soon, if there is one: between two operators on the CPU, between two
    /// transfers on a device. Its result is then Cause::cancelled. The next run is as any
    /// other. Any thread.
    void cancel();

    /// How long each of the next runs may take, until it ends as timed_out: between two operators
    /// on the CPU, as soon as it is noticed on a device. Nothing: no limit on the CPU, on a device
    /// its own. Precondition: no run is under way.
    void set_deadline(std::optional<std::chrono::milliseconds> deadline);

    /// Sets the state tensors to what they are at the start. Precondition: no run is under way.
    void reset_state();

    [[nodiscard]] const std::vector<PlacedOperator>& placements() const;
    [[nodiscard]] const graph::MemoryReport& memory() const;
    /// How many of the threads the next run takes for operators of the CPU.
    [[nodiscard]] int threads_taken() const;

    /// The devices that are open, in the order of SessionOptions::devices, without the CPU. One
    /// that runs nothing is not opened: null.
    [[nodiscard]] std::span<const std::shared_ptr<Device>> devices() const;
    /// What the last run's programs did that right ones would not, of all devices that are Watched.
    [[nodiscard]] std::vector<Finding> findings() const;
    /// The sums over devices() that count; nothing when none does. Never waits for a run. Any
    /// thread.
    [[nodiscard]] std::optional<DeviceCounters> counters() const;

  private:
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::runtime
