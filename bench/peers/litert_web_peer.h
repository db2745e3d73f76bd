// LiteRT as a peer where its own program is not to be had: Chromium has LiteRT inside, native, with
// XNNPACK, behind WebNN, and LiteRT.js brings a network there. Both, and what drives the browser,
// are npm packages, in a program that node runs (litert_web.mjs).
//
// Seen in 153: XNNPACK is built there without AVX-512, so that its best convolutions of bytes are
// AVX2's with AVX-VNNI; it takes those of int8, and those of uint8 run on LiteRT's own kernels. Of
// two processors it took one thread. From Chromium's source of another version: threads are half of
// the processors, four at most, and WebNN has LiteRT prepare the network anew before every run.
// Neither that is subtracted nor the QUANTIZE at int8 ends.
#pragma once

#include <memory>
#include <string>

#include "peers/likeness.h"
#include "peers/node_program.h"
#include "reef/base/result.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"

namespace reef::peers {

class LitertWebPeer {
  public:
    /// Starts the browser with the network. The executor's inputs are the check's: it has run.
    /// Errors: unsupported for what LiteRT.js or WebNN refuse or run in parts; not_found without
    /// node or a package. `threads`: see why_no_litert_web().
    [[nodiscard]] static Result<LitertWebPeer> start(const model::Model& model,
                                                     graph::Executor& ours, int threads);

    [[nodiscard]] const std::string& version() const { return program_->version(); }
    /// The network that Chromium's LiteRT got of WebNN.
    [[nodiscard]] const OptimisedGraph& optimised() const { return optimised_; }
    [[nodiscard]] const Likeness& alike() const { return alike_; }
    /// The least of as many times of two runs behind one another, which others precede for the time
    /// that is given, one at least.
    [[nodiscard]] Result<ProgramTime> turn(int times, double warm_up_ms) {
        return program_->turn(times, warm_up_ms);
    }

  private:
    LitertWebPeer(ScratchFolder folder, NodeProgram program)
        : folder_(std::move(folder)), program_(std::make_unique<NodeProgram>(std::move(program))) {}

    ScratchFolder folder_;
    std::unique_ptr<NodeProgram> program_;
    OptimisedGraph optimised_;
    Likeness alike_{};
};

/// Why there is none here, or none that takes as many threads and what REEF_SIMD limits Reef to; ""
/// where it may be. REEF_LITERT_SIMD names what the browser's XNNPACK has, in place of what that of
/// 153 takes of this machine.
[[nodiscard]] std::string why_no_litert_web(int threads);

/// The network with uint8 inputs and outputs in place of quantised int8 ones, 128 more: LiteRT.js
/// knows no int8.
[[nodiscard]] model::Model with_raised_ends(model::Model model);

}  // namespace reef::peers
