// Products of bytes where they lie: fours of activations in narrow memory with fours of parameters
// in wide rows, by one instruction for each vector of lanes. That needs VNNI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reef_spec/edgetpu_machine.h"
#include "tensor_kernels.h"

namespace reef::edgetpu::sim {

/// The parameters of a block. With x and w unsigned, X and W their zero points, the sum of
/// (x - X) * (w - W) is that of x * (w - 128), and (128 - W) times the sum of x, less X times the
/// sum of w - W. The last is the same for all positions: `start`.
///
/// Steps of one byte are put together, as far as their activations follow each other.
struct QuadParameters {
    std::span<const std::uint8_t* const> rows;  ///< the wide row of each step
    unsigned lanes = 4;                         ///< steps of one byte have at most 8
    std::int32_t in_zero = 0;
    /// Up to 8 lanes: the parameters of each four, and as many ones, whose products are the sum of
    /// x; both are 0 where four bytes have fewer.
    std::uint8_t* packed = nullptr;
    const std::int32_t* zero = nullptr;  ///< of each lane
    /// Of steps of one byte, else empty: which byte of its lane each takes, and their runs.
    std::span<const std::uint8_t> quarters;
    std::span<const InputRun> runs;
    // Made by prepare().
    alignas(64) std::int32_t start[spec::lane_count];
    alignas(64) std::int32_t input_weight[spec::lane_count];  ///< 128 - W
    bool weighs_inputs = false;                               ///< some input_weight is not 0
};

struct QuadKernels {
    /// At once.
    static constexpr std::size_t most_positions = 64;

    /// start, input_weight and packed, of 8 * lanes bytes for each four. `used` lanes can be seen.
    void (*prepare)(QuadParameters& parameters, unsigned used);
    /// sums[position][lane] = (or +=) the block's; positions are where each has its first byte,
    /// `runs` are of fours. At most most_positions.
    void (*multiply)(const QuadParameters& parameters, std::span<const InputRun> runs,
                     const std::uint8_t* narrow, std::span<const std::uint32_t> positions, bool add,
                     std::int32_t* sums);
};

/// Null where the machine has no such instruction, or REEF_SIMD does not allow it.
[[nodiscard]] const QuadKernels* quad_kernels();

}  // namespace reef::edgetpu::sim
