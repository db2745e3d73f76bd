// What reef_peers_bench measured, as text and as JSON.
//
// JSON, schema_version 5:
//   target, clock_ghz                    the machine: vectors, its clock
//   byte_products_ns, float_products_ns  what one core multiplies at most in a nanosecond
//   threads, rounds                      of all sides; a round's time is the least of three runs
//   left_out                             peers that are not here, each with its reason
//   median_ratio_to_best, worst_ratio_to_best   of the networks' ratio_to_best; null without one
//   networks[]                           network, and then problem (why nothing was measured) or:
//     reef_ms                            least of all rounds, like every other time
//     products, share_of_peak            multiplications, and how much of what the machine can do
//     operators, operators_on_xnnpack    XNNPACK runs what it has; the rest runs on Reef's kernels
//     best_peer, ratio_to_best           the peer with the highest ratio
//     left_out                           peers without a figure for this network: name, reason
//     peers[]                            name, ms, ratio (Reef / peer: median of the rounds),
//                                        ratio_lower_quartile, ratio_upper_quartile,
//                                        ratio_of_least (of the least times, for a machine that
//                                        others use), and
//       outputs_equal, output_steps_apart, output_mean_steps_apart
//                                        share of equal output values on one random input, the
//                                        farthest and the mean in quantisation steps; null where
//                                        nothing is compared, absent for programs that time
//                                        themselves. Of ONNX Runtime they are those of what an
//                                        ARG_MAX at the end chooses from
//       output_relative                  the farthest of float32 outputs, by the largest value;
//                                        null where there are none
//       version                          of programs and libraries that are opened at run time
//     and of ONNX Runtime and of LiteRT in Chromium:
//       ms_with_overhead, overhead_ms    ms is their difference: the binding's own time is the
//                                        least of a network that does nothing
//       integer_convolutions, float_convolutions, nodes
//                                        of the graph that they run in place of the file's
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "peers/likeness.h"
#include "peers/node_program.h"

namespace reef::peers {

struct Options {
    std::vector<std::string> models;
    std::string onnx_folder{};
    int rounds = 41;
    int threads = 1;
    bool json = false;
    bool cpu_time = false;
    bool operators = false;
    bool memory = false;
    std::string memory_of{};  ///< the side that a process of its own is for
};

/// Of what node runs.
struct ProgramFigures {
    OptimisedGraph optimised;
    std::vector<double> network_ms{}, overhead_ms{};  ///< by round
};

/// One peer on one network.
struct Column {
    std::string peer;
    std::optional<Likeness> alike{};
    std::optional<ProgramFigures> program{};
    std::string version{};
    std::vector<double> milliseconds{};  ///< by round; of slow ones there are fewer rounds
    std::vector<double> ratios{};        ///< Reef's time of the same round over the peer's

    [[nodiscard]] double least() const;
    [[nodiscard]] double ratio() const;
};

struct LeftOut {
    std::string peer, reason;
};

struct Row {
    std::string network;
    std::vector<double> reef{};  ///< milliseconds by round
    std::vector<Column> peers{};
    std::vector<LeftOut> left_out{};
    std::size_t operators = 0, on_xnnpack = 0;
    std::uint64_t products = 0;
    double peak_share = 0;  ///< of all threads' products of the element type; 0: not known
    std::string problem{};  ///< why there is nothing else

    /// Precondition: there are peers.
    [[nodiscard]] const Column& best() const;
};

/// `left_out`: peers that no network has.
void print_text(const std::vector<Row>& rows, const std::vector<LeftOut>& left_out,
                const Options& options);
void print_json(const std::vector<Row>& rows, const std::vector<LeftOut>& left_out,
                const Options& options);

}  // namespace reef::peers
