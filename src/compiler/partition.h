// Which operators a chip takes, in how many programs, and why the others stay on the CPU.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph.h"

namespace reef::compiler {

/// What a chip can do.
class Target {
  public:
    Target() = default;
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    virtual ~Target() = default;
    /// Why the chip does not compute the node, one clause; empty when it does. Nodes that are
    /// Unknown or Folded are not asked for.
    [[nodiscard]] virtual std::string refusal(const Graph& graph, const Node& node) const = 0;
};

/// Nodes that run one after the other without the CPU.
struct Program {
    /// A tensor of the model, and the value on the chip whose bytes it has.
    struct Port {
        ValueId tensor = 0;
        ValueId source = 0;
        friend bool operator==(const Port&, const Port&) = default;
    };
    std::vector<std::size_t> nodes;  ///< in order; no Folded ones
    std::vector<Port> inputs, outputs;
    std::uint64_t macs = 0;
};

struct Partition {
    /// For each node: why it is not in a program; empty when it is, or is Folded away.
    std::vector<std::string> reasons;
    std::vector<Program> programs;
    /// Operators of the model with the programs in their midst, in an order in which they can run.
    struct Item {
        bool program = false;
        std::size_t index = 0;  ///< of a program or of an operator
    };
    std::vector<Item> order;
};

/// Of a legalised graph. The programs with the most multiply-adds stay when there would be more
/// than `most_programs`.
[[nodiscard]] Partition partition(const Graph& graph, const Target& target,
                                  std::size_t most_programs);

}  // namespace reef::compiler
