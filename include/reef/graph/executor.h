// Runs a graph, each operator by whoever takes it: the CPU's kernels, devices.
//
// create() checks every operator against the stated limits, packs weights, and plans one arena from
// the tensors' lifetimes; run() then allocates nothing on the CPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/graph/run_control.h"
#include "reef/model/graph.h"

namespace reef::graph {

/// Who runs operators: cpu::placer() makes the CPU's, a session the devices'.
class Placer;

struct ExecutorOptions {
    /// Asked for every operator, in this order; the first that takes it runs it.
    std::vector<std::shared_ptr<Placer>> placers{};
    /// 1 to 256. Runs of less than 5 ms take one of them where a measurement, some runs now and
    /// then, finds that more are no faster.
    int threads = 1;
    /// No two tensors share memory: every tensor() stays readable. Without it operators whose
    /// results no kernel reads are left out (the LOGISTIC of a SiLU, whose product is one table).
    bool keep_all_tensors = false;
    std::size_t subgraph = 0;
    /// Asked before every operator of a run; must outlive the executor. Null: every run ends by
    /// itself.
    const RunControl* control = nullptr;
};

struct MemoryReport {
    std::size_t arena_bytes = 0;        ///< activations and scratch, as planned
    std::size_t lower_bound_bytes = 0;  ///< the most bytes alive at once during any one operator
    std::size_t variable_bytes = 0;     ///< state tensors
    std::size_t packed_bytes = 0;       ///< weights in the kernels' own layouts
    /// What create() computes, and no run: what follows from constants and shapes. In rising order.
    std::vector<model::TensorIndex> known_tensors{};
    friend bool operator==(const MemoryReport&, const MemoryReport&) = default;
};

struct Placement {
    std::size_t operator_index = 0;
    std::string operator_name;
    std::string kernel;      ///< e.g. "conv_2d fast AVX2", "softmax reference"
    std::size_t placer = 0;  ///< which of ExecutorOptions::placers runs it
    std::string reason;      ///< why that one does, in its words; may be empty
};

/// Sees every operator's start and end; called on the thread that called run().
class RunObserver {
  public:
    using Clock = std::chrono::steady_clock;
    virtual ~RunObserver() = default;
    virtual void on_operator(std::size_t operator_index, Clock::time_point begin,
                             Clock::time_point end) = 0;
};

/// Not thread-safe: one run at a time. Holds a reference to the model's constant data
/// (SharedBytes), so the Model itself may go.
class Executor {
  public:
    /// Errors: bad_argument for options out of range; unsupported, with the operator as place, for
    /// operators that no placer takes, types without a kernel, non-constant shapes and axes, and
    /// tensors that need more than 4 GiB; bad_input for tensors that are not written exactly once
    /// before they are read, and for declared shapes other than the operators compute; io_failed
    /// for memory that the system does not have.
    [[nodiscard]] static Result<Executor> create(const model::Model& model,
                                                 const ExecutorOptions& options);
    /// The memory that create() would take, without taking it, without packing weights, which may
    /// be read, and without computing large values that follow from constants, unless they are
    /// bytes or become bytes: one that only a run would find bad counts as computed.
    [[nodiscard]] static Result<MemoryReport> plan(const model::Model& model,
                                                   const ExecutorOptions& options);
    Executor(Executor&&) noexcept;
    Executor& operator=(Executor&&) noexcept;
    ~Executor();

    [[nodiscard]] const model::Subgraph& graph() const;
    [[nodiscard]] std::size_t input_count() const;
    [[nodiscard]] std::size_t output_count() const;

    /// NHWC bytes of the i-th graph input or output; the addresses are valid until the executor
    /// goes. An input keeps what was written to it: runs and reset_state() do not change it, and
    /// two runs in a row without state give the same outputs. Before the first write it is zero
    /// bytes. An output holds the last run's result until the next run begins, whatever is written
    /// to inputs meanwhile; an output that is an input, too, is that input. Precondition: i <
    /// count.
    [[nodiscard]] MutableBytes input(std::size_t i);
    [[nodiscard]] Bytes output(std::size_t i) const;

    /// Any tensor that a run computes, or a constant; meaningful for computed tensors only with
    /// keep_all_tensors. Empty for tensors that nothing touches. Precondition: index in range.
    [[nodiscard]] Bytes tensor(model::TensorIndex index) const;

    /// One inference. Errors: bad_input when data decide (an index out of range, a division by
    /// zero), with the operator as place; those of RunControl::check(). The outputs are then not
    /// meaningful.
    [[nodiscard]] Status run(RunObserver* observer = nullptr);

    /// Sets the state tensors (LSTM) to what they are at the start. Inputs and outputs stay as they
    /// are.
    void reset_state();

    [[nodiscard]] const MemoryReport& memory() const;
    /// How many threads the next run takes: those of the options, or one.
    [[nodiscard]] int threads_taken() const;
    [[nodiscard]] std::span<const Placement> placements() const;

  private:
    struct Impl;
    explicit Executor(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// What fills a state tensor at the start: int8 its zero point, other types zero bytes, as TFLite
/// does.
[[nodiscard]] std::byte state_at_start(const model::Tensor& tensor);

}  // namespace reef::graph
