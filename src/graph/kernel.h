// What runs one operator of a graph, and what it sees of the graph.
//
// An operator becomes a Kernel in three steps. Whoever makes it checks the operator against its
// limits (refusals name the limit) and computes sizes, pack() lays out constant weights, and run()
// works on the addresses in its Frame and allocates nothing.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef {
class WorkerPool;  // worker_pool.h: runs a loop on the executor's threads
}

namespace reef::graph {

/// Bytes of tensors that operators compute, each the same in every run (known_values.h).
using KnownValues = std::map<model::TensorIndex, SharedBytes>;

/// One operator of a graph, and the model around it. Lives only while its kernel is made.
class OperatorView {
  public:
    /// `known`: what operators before it compute, where that is known. Precondition: `index` is
    /// below the number of the graph's operators.
    OperatorView(const model::Model& model, const model::Subgraph& graph, std::size_t index,
                 const KnownValues* known = nullptr)
        : model_(model), graph_(graph), index_(index), known_(known) {}

    [[nodiscard]] const model::Model& model() const { return model_; }
    [[nodiscard]] const model::Subgraph& graph() const { return graph_; }
    [[nodiscard]] std::size_t index() const { return index_; }
    [[nodiscard]] const model::Operator& op() const { return graph_.operators[index_]; }
    [[nodiscard]] std::size_t input_count() const { return op().inputs.size(); }
    [[nodiscard]] std::size_t output_count() const { return op().outputs.size(); }
    /// Absent optional inputs, and positions beyond the list, have no tensor.
    [[nodiscard]] bool has_input(std::size_t i) const;
    /// Precondition: has_input(i).
    [[nodiscard]] const model::Tensor& input(std::size_t i) const;
    [[nodiscard]] const model::Tensor& output(std::size_t i) const;
    /// Intermediate tensors carry only a type and a quantisation.
    [[nodiscard]] bool has_intermediate(std::size_t i) const;
    /// Precondition: has_intermediate(i).
    [[nodiscard]] const model::Tensor& intermediate(std::size_t i) const;
    /// Constant bytes of an input, or known ones; empty when only a run computes them. They may lie
    /// at any address: read wider types with memcpy. (The addresses in a Frame are aligned to 16
    /// bytes.)
    [[nodiscard]] Bytes constant(std::size_t i) const;
    /// The same with its owner, for kernels that keep the bytes.
    [[nodiscard]] SharedBytes shared_constant(std::size_t i) const;

    /// The operator's options of type T, or T's defaults when the file gives none.
    template <typename T>
    [[nodiscard]] Result<T> options() const {
        if (const T* given = std::get_if<T>(&op().options)) return *given;
        if (std::holds_alternative<std::monostate>(op().options)) return T{};
        return fail(Cause::bad_input, "the operator has options of another operator");
    }

    /// Errors when the counts differ from the expected ranges.
    [[nodiscard]] Status expect_counts(std::size_t min_inputs, std::size_t max_inputs,
                                       std::size_t outputs) const;

  private:
    const model::Model& model_;
    const model::Subgraph& graph_;
    std::size_t index_;
    const KnownValues* known_;
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
    /// Only data, or a device, can make it fail (an index out of range).
    [[nodiscard]] virtual Status run(const Frame& frame) = 0;
};

using PreparedKernel = Result<std::unique_ptr<Kernel>>;

}  // namespace reef::graph
