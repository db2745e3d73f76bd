// A peer that comes as an npm package: a program that node runs, which answers lines with JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "peers/child.h"
#include "peers/likeness.h"
#include "peers/scratch_folder.h"
#include "reef/base/result.h"
#include "reef/graph/executor.h"

namespace reef::peers {

/// What a peer runs in place of the network. Convolutions are ONNX Runtime's Conv, and all products
/// of weights that LiteRT has.
struct OptimisedGraph {
    std::size_t integer_convolutions = 0;
    std::size_t float_convolutions = 0;
    std::map<std::string, std::size_t> nodes;  ///< by the operator's name
};

/// The least of some runs.
struct ProgramTime {
    double network_ms = 0;   ///< as the program sees it
    double overhead_ms = 0;  ///< of the binding: the same for a network that does nothing
};

class NodeProgram {
  public:
    /// Starts it with these arguments; it says its version. Errors: not_found without node,
    /// unsupported with what the program says.
    [[nodiscard]] static Result<NodeProgram> start(const std::string& file,
                                                   const std::vector<std::string>& arguments);

    [[nodiscard]] const std::string& version() const { return version_; }
    /// Waits for the line that says that the network is ready, and perhaps a version that is known
    /// by then. Errors: what the program says.
    [[nodiscard]] Status ready();
    /// As many times, behind runs for the time that is given, one at least. Errors, besides:
    /// io_failed for an answer without times.
    [[nodiscard]] Result<ProgramTime> turn(int times, double warm_up_ms);
    /// One run with the executor's inputs; it has run. Errors, besides: outputs of another size.
    [[nodiscard]] Result<Likeness> check(graph::Executor& ours, const ScratchFolder& folder);
    /// The line of JSON that answers a line, an object. Errors: what the program says, before it
    /// ends, too.
    [[nodiscard]] Result<std::string> ask(const std::string& line);

  private:
    explicit NodeProgram(Child child) : child_(std::move(child)) {}

    Child child_;
    std::string version_;
};

/// Why the program does not start; "" where it does.
[[nodiscard]] std::string why_no_program(const std::string& file);

/// Whether the tensor is 128 more there: quantised int8 is uint8.
[[nodiscard]] bool is_raised(const model::Tensor& tensor);

}  // namespace reef::peers
