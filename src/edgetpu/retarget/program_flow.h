// The tensor instructions of a compiled model with where their data come from.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "edgetpu/retarget/program_alignment.h"
#include "edgetpu/trace/data_flow.h"
#include "reef/base/result.h"
#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {

/// Whose results an instruction reads, itself or through copies.
struct FlowSources {
    std::vector<std::size_t> nodes;  ///< indices in ProgramFlow::nodes, sorted
    bool from_host = false;          ///< what no program before made
};

struct FlowNode {
    TensorInstruction at;
    FlowSources sources;  ///< of its input, its parameters, its biases
    /// Of the input that meets the first two and the next two rows of parameters: the operands of
    /// a sum.
    std::array<FlowSources, 2> operands;
    /// Constants of the program among its input: where the mesh instructions are that fill memory
    /// with them, on whatever tile. Sorted.
    std::vector<trace::InstructionPlace> fills;
    /// Rows of its parameters in the blobs of CompiledParameters; size_bytes is 0.
    std::vector<BlobRange> rows;
};

struct ProgramFlow {
    struct Output {
        std::string name;  ///< of the layer
        FlowSources sources;
        /// Of channels 4 * i to 4 * i + 3, where they are known.
        std::vector<FlowSources> by_channels;
    };
    std::vector<FlowNode> nodes;  ///< by operator and stream
    std::vector<Output> outputs;
    bool own = false;  ///< as CompiledParameters::is_own()
};

/// Errors: those of trace::data_flow() and decode().
[[nodiscard]] Result<ProgramFlow> program_flow(const CompiledParameters& opened);

/// By node: it only hands on what it reads.
[[nodiscard]] std::vector<bool> copies_of(const ProgramFlow& flow);

/// Constants among the input of a node, itself or through copies. Sorted.
[[nodiscard]] std::vector<trace::InstructionPlace> fills_through_copies(
    const ProgramFlow& flow, std::size_t node, const std::vector<bool>& copies);

/// The same sources when the nodes for which `copies` is true only hand on what they read.
[[nodiscard]] FlowSources through_copies(const ProgramFlow& flow, const FlowSources& sources,
                                         const std::vector<bool>& copies);

}  // namespace reef::edgetpu
