// Which operators of a plain model give what an operator reads, as a program may compute them.
#pragma once

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// Whose results may stand in memory for a tensor: the operator that gives it and, where the
/// program may leave that out, those before it.
struct Producers {
    std::set<std::size_t> ops;
    bool from_host = false;
    bool unmodelled = false;  ///< or an operator whose instructions are not known
    [[nodiscard]] bool empty() const { return ops.empty() && !from_host && !unmodelled; }
};

class OperatorGraph {
  public:
    /// Refers to both.
    OperatorGraph(const CompiledParameters& opened, const std::vector<Requantisation>& roles);

    /// By computed operand of the operator.
    [[nodiscard]] const std::vector<Producers>& operands(std::size_t op) const {
        return operands_[op];
    }
    /// Of the plain model's tensor that an output layer has the name of; nothing known: empty.
    [[nodiscard]] Producers output(std::string_view layer) const;
    /// The same by 4 channels, of a concatenation of channels; of others: empty.
    [[nodiscard]] std::vector<Producers> output_by_channels(std::string_view layer) const;
    /// An operator on the chip has instructions that are not known.
    [[nodiscard]] bool has_unmodelled() const { return has_unmodelled_; }

  private:
    [[nodiscard]] Producers producers_of(model::TensorIndex tensor) const;
    void add_producers(model::TensorIndex tensor, Producers& producers,
                       std::set<model::TensorIndex>& seen) const;

    const CompiledParameters& opened_;
    const std::vector<Requantisation>& roles_;
    std::vector<std::size_t> producer_;  ///< by tensor; none: the number of operators
    std::vector<std::vector<Producers>> operands_;
    bool has_unmodelled_ = false;
};

/// Operators that a program computes without instructions of their own, or none that a scale
/// enters; `own`: one of Reef's compiler.
[[nodiscard]] bool moves_only(model::Op op, bool own);

}  // namespace reef::edgetpu
