// ONNX Runtime as a peer: the npm package onnxruntime-node, in a program that node runs (ort.mjs).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "peers/likeness.h"
#include "peers/node_program.h"
#include "reef/base/result.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"

namespace reef::peers {

class OrtPeer {
  public:
    /// Converts the network and starts the program. The executor's inputs are the check's: it has
    /// run. Errors: unsupported for what has no ONNX form; not_found without node, package, or
    /// ONNX's library at build time.
    [[nodiscard]] static Result<OrtPeer> start(const model::Model& model, graph::Executor& ours,
                                               int threads);
    OrtPeer(OrtPeer&&) noexcept;
    OrtPeer& operator=(OrtPeer&&) noexcept;
    ~OrtPeer();

    [[nodiscard]] const std::string& version() const;
    [[nodiscard]] const OptimisedGraph& optimised() const;
    [[nodiscard]] const Likeness& alike() const;
    /// As many runs, behind others for the time that is given, one at least.
    [[nodiscard]] Result<ProgramTime> turn(int runs, double warm_up_ms);
    /// The least microseconds of the model's operators; 0 of what the optimiser has made part of
    /// another.
    [[nodiscard]] Result<std::vector<double>> operator_times(int runs, std::size_t operators);

  private:
    struct Impl;
    explicit OrtPeer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// The file that ONNX Runtime gets (onnx_model.h). Errors, besides: not_found without ONNX's
/// library.
[[nodiscard]] Result<std::string> onnx_of(const model::Model& model, const model::Subgraph& graph);

/// Why there is no ONNX Runtime here; "" where it may be.
[[nodiscard]] std::string why_no_ort();

}  // namespace reef::peers
