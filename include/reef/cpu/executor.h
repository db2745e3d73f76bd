// Runs a graph on the CPU, bit-exact with TFLite 2.9's builtin kernels, or with the arithmetic of
// the Edge TPU.
//
// create() checks every operator against the kernels' stated limits, packs weights, and plans one
// arena from the tensors' lifetimes; run() then allocates nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// Which kernels run: the plain ones that read like the arithmetic's definition, or the vectorised
/// ones where they exist. Both give the same bytes for integer tensors.
enum class KernelSet : std::uint8_t { reference, fast };

/// How quantised operators compute. tflite: as TFLite 2.9's builtin kernels, bit for bit. edgetpu:
/// as the Edge TPU computes the operators that the vendor's compiler would place on it, with one
/// float32 multiplication per sum and ties to even, so that a chip's or a simulator's tensors can
/// be compared byte by byte; the others stay TFLite's. What the chip computes in a way that is not
/// known is refused by name.
enum class Arithmetic : std::uint8_t { tflite, edgetpu };

/// An operator that a device of its own runs, in the middle of a graph on the CPU.
class DeviceOperator {
  public:
    virtual ~DeviceOperator() = default;
    /// What runs it there, for placements.
    [[nodiscard]] virtual std::string kernel() const = 0;
    /// Tensors in the operator's order, with the sizes that the graph declares; variable inputs
    /// (state) may be written. Called from the thread that calls Executor::run().
    [[nodiscard]] virtual Status run(std::span<const MutableBytes> inputs,
                                     std::span<const MutableBytes> outputs) = 0;
};

/// Which operators a device takes.
class DeviceOperators {
  public:
    virtual ~DeviceOperators() = default;
    /// Null when the operator is not for the device; then the CPU runs it.
    [[nodiscard]] virtual Result<std::unique_ptr<DeviceOperator>> prepare(
        const model::Subgraph& graph, const model::Operator& op) = 0;
};

struct ExecutorOptions {
    KernelSet kernels = KernelSet::fast;
    Arithmetic arithmetic = Arithmetic::tflite;
    int threads = 1;                ///< 1 to 256
    bool keep_all_tensors = false;  ///< no two tensors share memory: every tensor() stays readable
    std::size_t subgraph = 0;
    /// Asked for every operator; must live during create().
    DeviceOperators* devices = nullptr;
};

struct MemoryReport {
    std::size_t arena_bytes = 0;        ///< activations and scratch, as planned
    std::size_t lower_bound_bytes = 0;  ///< the most bytes alive at once during any one operator
    std::size_t variable_bytes = 0;     ///< state tensors
    std::size_t packed_bytes = 0;       ///< weights in the kernels' own layouts
    friend bool operator==(const MemoryReport&, const MemoryReport&) = default;
};

struct Placement {
    std::size_t operator_index = 0;
    std::string operator_name;
    std::string kernel;      ///< e.g. "conv_2d fast AVX2", "softmax reference"
    bool on_device = false;  ///< a DeviceOperator runs it
    /// With Arithmetic::edgetpu why the operator has that arithmetic, or why TFLite's; else empty.
    std::string reason;
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
    /// operators and types without a kernel, non-constant shapes and axes, and tensors that need
    /// more than 4 GiB; bad_input for tensors that are not written exactly once before they are
    /// read, and for declared shapes other than the operators compute.
    [[nodiscard]] static Result<Executor> create(const model::Model& model,
                                                 const ExecutorOptions& options);
    /// The memory that create() would take, without taking it and without packing weights.
    [[nodiscard]] static Result<MemoryReport> plan(const model::Model& model,
                                                   const ExecutorOptions& options);
    Executor(Executor&&) noexcept;
    Executor& operator=(Executor&&) noexcept;
    ~Executor();

    [[nodiscard]] const model::Subgraph& graph() const;
    [[nodiscard]] std::size_t input_count() const;
    [[nodiscard]] std::size_t output_count() const;

    /// NHWC bytes of the i-th graph input or output; the addresses are valid until the executor
    /// goes. Unless keep_all_tensors is set, inputs and outputs may share memory: a run overwrites
    /// inputs, and writing an input overwrites the outputs of the run before. Precondition: i <
    /// count.
    [[nodiscard]] MutableBytes input(std::size_t i);
    [[nodiscard]] Bytes output(std::size_t i) const;

    /// Any tensor that a run computes, or a constant; meaningful for computed tensors only with
    /// keep_all_tensors. Empty for tensors that no operator touches. Precondition: index in range.
    [[nodiscard]] Bytes tensor(model::TensorIndex index) const;

    /// One inference. Errors: bad_input when data decide (an index out of range, a division by
    /// zero), with the operator as place; the outputs are then not meaningful.
    [[nodiscard]] Status run(RunObserver* observer = nullptr);

    /// Sets the state tensors (LSTM) to what they are at the start: int8 to the zero point, other
    /// types to zero bytes, as TFLite does.
    void reset_state();

    [[nodiscard]] const MemoryReport& memory() const;
    [[nodiscard]] std::span<const Placement> placements() const;

  private:
    struct Impl;
    explicit Executor(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// The instruction set that the fast kernels use on this machine: "AVX2", "AVX3_DL" (AVX-512 with
/// VNNI), "NEON", ... The environment variable REEF_SIMD, read once, names a lower one; a name that
/// this machine does not have is reported through the log sink and ignored.
[[nodiscard]] std::string_view simd_target();

}  // namespace reef::cpu
