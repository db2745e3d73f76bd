// The address plan of one device: who is where in global memory, and when.
//
// Time counts the operators of the functions in the order in which main calls them; a group is one
// step. Operators read their operands whole, then write their results whole.
#pragma once

#include <limits>
#include <set>
#include <vector>

#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

/// A value in memory, from when it is written to when it is last read.
struct Extent {
    static constexpr std::int64_t never = -2, before_all = -1;
    static constexpr std::int64_t after_all = std::numeric_limits<std::int64_t>::max();

    ValueIndex value = 0;
    const Operator* writer = nullptr;  ///< null for inputs of the network and lost arguments
    std::uint64_t start = 0, end = 0;
    std::int64_t written = before_all;
    std::int64_t last_read = never;

    [[nodiscard]] bool meets(const Extent& other) const {
        return start < other.end && other.start < end;
    }
};

struct AddressPlan {
    std::vector<Extent> extents;
    /// By extent: those whose memory it shares on purpose, because one is a view of the other.
    std::vector<std::set<std::size_t>> shares;
    /// Positions among main's returned values, and their extents.
    std::vector<std::size_t> outputs;

    struct Overlap {
        std::size_t kept = 0;     ///< still needed
        std::size_t writing = 0;  ///< what is written over it
    };
    [[nodiscard]] std::vector<Overlap> overlaps() const;
};

/// Values without an address are not in it. Calls of functions that there are not are left out.
[[nodiscard]] AddressPlan plan_of(const FinalProgram& program, const DeviceProgram& device);

/// The operator's result may be a view of its operand: it moves nothing, or only what differs.
[[nodiscard]] bool works_in_place(const Operator& op);
/// top.Weight, top.None: they compute nothing.
[[nodiscard]] bool is_constant(const Operator& op);

/// Positions of main's results that a later operator writes over.
[[nodiscard]] std::vector<std::size_t> overwritten_outputs(const FinalProgram& program,
                                                           const DeviceProgram& device);

/// Bytes behind coeff_addr that the weights of these functions need, in whole blocks of 4 KB: exact
/// on all files that are known.
[[nodiscard]] std::uint64_t coefficient_bytes(const FinalProgram& program,
                                              const DeviceProgram& device);

inline constexpr std::uint64_t block_bytes = 4096;
[[nodiscard]] inline std::uint64_t in_blocks(std::uint64_t bytes) {
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
}

}  // namespace reef::sophgo
