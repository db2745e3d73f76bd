// What a CPU kernel is, and what it sees of the graph.
//
// An operator becomes a Kernel in three steps. prepare() checks it against the kernel's limits
// (refusals name the limit) and computes multipliers and sizes, pack() lays out constant weights,
// and run() works on the addresses in its Frame and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/cpu/executor.h"
#include "reef/model/graph.h"

namespace reef {
class WorkerPool;  // worker_pool.h: runs a loop on the executor's threads
}

namespace reef::cpu {

/// One operator as prepare() sees it. Lives only during prepare().
class OperatorView {
  public:
    OperatorView(const model::Model& model, const model::Subgraph& graph, const model::Operator& op)
        : model_(model), graph_(graph), op_(op) {}

    [[nodiscard]] const model::Operator& op() const { return op_; }
    [[nodiscard]] std::size_t input_count() const { return op_.inputs.size(); }
    [[nodiscard]] std::size_t output_count() const { return op_.outputs.size(); }
    /// Absent optional inputs, and positions beyond the list, have no tensor.
    [[nodiscard]] bool has_input(std::size_t i) const;
    /// Precondition: has_input(i).
    [[nodiscard]] const model::Tensor& input(std::size_t i) const;
    [[nodiscard]] const model::Tensor& output(std::size_t i) const;
    /// Intermediate tensors carry only a type and a quantisation.
    [[nodiscard]] bool has_intermediate(std::size_t i) const;
    /// Precondition: has_intermediate(i).
    [[nodiscard]] const model::Tensor& intermediate(std::size_t i) const;
    /// Constant bytes of an input; empty when it is computed at run time. They may lie at any
    /// address: read wider types with memcpy. (The addresses in a Frame are aligned to 16 bytes.)
    [[nodiscard]] Bytes constant(std::size_t i) const;
    /// The same with its owner, for kernels that keep the bytes.
    [[nodiscard]] SharedBytes shared_constant(std::size_t i) const;

    /// The operator's options of type T, or T's defaults when the file gives none.
    template <typename T>
    [[nodiscard]] Result<T> options() const {
        if (const T* given = std::get_if<T>(&op_.options)) return *given;
        if (std::holds_alternative<std::monostate>(op_.options)) return T{};
        return fail(Cause::bad_input, "the operator has options of another operator");
    }

    /// Errors when the counts differ from the expected ranges.
    [[nodiscard]] Status expect_counts(std::size_t min_inputs, std::size_t max_inputs,
                                       std::size_t outputs) const;

  private:
    const model::Model& model_;
    const model::Subgraph& graph_;
    const model::Operator& op_;
};

/// Addresses for one run, in the operator's order; null for absent optional inputs. Variable
/// tensors (state) are inputs that a kernel may write.
struct Frame {
    std::span<std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::span<std::byte> scratch;  ///< 64-byte aligned, at least scratch_bytes() long
    WorkerPool& pool;

    template <typename T>
    [[nodiscard]] const T* in(std::size_t i) const {
        return reinterpret_cast<const T*>(inputs[i]);
    }
    template <typename T>
    [[nodiscard]] T* state(std::size_t i) const {
        return reinterpret_cast<T*>(inputs[i]);
    }
    template <typename T>
    [[nodiscard]] T* out(std::size_t i) const {
        return reinterpret_cast<T*>(outputs[i]);
    }
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    /// For placements: "conv_2d fast AVX2".
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::size_t scratch_bytes() const { return 0; }
    [[nodiscard]] virtual std::size_t packed_bytes() const { return 0; }
    /// Brings constant weights into the kernel's own form. Called once, before the first run; the
    /// sizes above are known without it, so that a memory plan costs no packing.
    virtual void pack() {}
    /// Only data can make it fail (an index out of range).
    [[nodiscard]] virtual Status run(const Frame& frame) = 0;
};

struct PrepareOptions {
    KernelSet kernels = KernelSet::fast;
    Arithmetic arithmetic = Arithmetic::tflite;
    int threads = 1;
};

using PreparedKernel = Result<std::unique_ptr<Kernel>>;
using Prepare = PreparedKernel (*)(const OperatorView& op, const PrepareOptions& options);

/// One row of the registry: an operator and the function that prepares it.
struct KernelEntry {
    model::Op op = model::Op::custom;
    std::string_view custom;  ///< custom operator's name, when op is Op::custom
    Prepare prepare = nullptr;
    std::string_view supports;  ///< one sentence for the support matrix: types and limits
};

/// Every kernel, sorted by operator number.
[[nodiscard]] std::span<const KernelEntry> kernel_registry();
/// Nothing when no kernel has that operator code.
[[nodiscard]] const KernelEntry* find_kernel(const model::OperatorCode& code);

}  // namespace reef::cpu
