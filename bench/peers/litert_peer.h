// LiteRT as a peer: its program `benchmark_model` (TensorFlow Lite's of the same name, too), which
// times a model itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peers/scratch_folder.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::peers {

class LitertPeer {
  public:
    /// Writes the network to a file: the one that the others get, whatever it came from. Errors:
    /// what write_tflite refuses.
    [[nodiscard]] static Result<LitertPeer> create(const model::Model& model, int threads);

    /// Starts the program, which warms up, and gives the least milliseconds of `runs`. Errors:
    /// io_failed when it does not start, fails, or says no time.
    [[nodiscard]] Result<double> turn(int runs) const;

  private:
    LitertPeer(ScratchFolder folder, std::vector<std::string> command)
        : folder_(std::move(folder)), command_(std::move(command)) {}

    ScratchFolder folder_;
    std::vector<std::string> command_;
};

/// Why there is no LiteRT here; "" where the variable REEF_LITERT_BENCHMARK names its program, or
/// the PATH has it.
[[nodiscard]] std::string why_no_litert();

/// The least microseconds in what the program prints. It prints a line of counts for the runs that
/// warm up and one for those that are measured: the last counts. Error (io_failed): it has none.
[[nodiscard]] Result<double> least_microseconds(std::string_view log);

}  // namespace reef::peers
